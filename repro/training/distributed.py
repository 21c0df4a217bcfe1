"""Data-parallel training under `torchrun`: NCCL on CUDA, gloo on the CPU.

Every process draws the same global batch and embeds its own share of it; the embeddings are gathered, and every process
computes the whole loss from them. Reading the loss once per process instead of splitting it keeps episodic losses,
which couple all images of a step, exact; the heads are small beside a backbone.

Gradients: through the gathering a process receives those of its own images only, times the number of processes, and
afterwards all gradients are averaged. So a backbone weight gets the sum over all images, a head weight (whose gradient
is complete everywhere) its own value, and batch norm's statistics, summed over processes, the gradients of all.

Backbones that draw random numbers (dropout, DropBlock) draw others per process: then losses agree in distribution only.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from repro.errors import BadInput
from repro.models.device import make_deterministic, pick_device


@dataclass(frozen=True)
class World:
    """The processes of a run, this one's rank among them, and its device."""

    device: torch.device = torch.device("cpu")
    rank: int = 0
    size: int = 1

    def share(self, items_N: Tensor) -> Tensor:
        """This process's part of a batch; the parts, in order of rank, make up the whole."""
        if len(items_N) < self.size:
            raise BadInput(f"a batch of {len(items_N)} cannot be shared by {self.size} processes; start fewer")
        return items_N.tensor_split(self.size)[self.rank]

    def gather(self, share_ND: Tensor, total: int) -> Tensor:
        """The embeddings (`total`×D) of all shares; gradients flow to the own share, times the number of processes."""
        return share_ND if self.size == 1 else _Gather.apply(share_ND, total, self.rank, self.size)

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace every gradient by its mean over the processes, in one message."""
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        if self.size == 1 or not gradients:
            return
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        flat /= self.size
        for gradient, mean in zip(gradients, flat.split([gradient.numel() for gradient in gradients]), strict=True):
            gradient.copy_(mean.view(gradient.shape))

    def agree(self, value: float) -> float:
        """The first process's value."""
        if self.size == 1:
            return value
        told = torch.tensor(value, dtype=torch.float64, device=self.device)
        dist.broadcast(told, src=0)
        return float(told)

    def align(self, model: nn.Module) -> None:
        """Give every process the first one's weights."""
        if self.size == 1:
            return
        with torch.no_grad():
            for tensor in model.state_dict().values():
                whole = tensor.contiguous()
                dist.broadcast(whole, src=0)
                tensor.copy_(whole)

    def share_batch_norm(self, model: nn.Module) -> None:
        """Let batch norm in training mode use the statistics of the global batch."""
        if self.size == 1:
            return
        if self.device.type == "cuda":
            from timm.layers import convert_sync_batchnorm  # knows timm's fused norm-activation layers too

            convert_sync_batchnorm(model)
            return
        for name, module in model.named_modules():
            if type(module) is nn.BatchNorm2d and module.affine and module.momentum and module.track_running_stats:
                module.__class__ = SharedBatchNorm2d  # same weights and buffers, other forward
            elif isinstance(module, nn.modules.batchnorm._BatchNorm):
                raise BadInput(f"{name}: {module} cannot be shared by CPU processes; train in one process or on CUDA")


ALONE = World()


@contextmanager
def process_group(device: str = "auto") -> Iterator[World]:
    """Join the processes that `torchrun` started, or be alone where it started none. CUDA is made deterministic."""
    picked = pick_device(device)
    if picked.type == "cuda":
        make_deterministic()
    if "WORLD_SIZE" not in os.environ:
        yield World(picked)
        return
    if picked.type == "cuda":
        picked = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(picked)
    dist.init_process_group("nccl" if picked.type == "cuda" else "gloo")
    try:
        yield World(picked, dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()


class _Gather(torch.autograd.Function):
    """See `World.gather`. Shares differ by one row at most, so shorter ones travel with one empty row."""

    @staticmethod
    def forward(ctx: Any, share_ND: Tensor, total: int, rank: int, size: int) -> Tensor:
        lengths = [len(part) for part in torch.empty(total).tensor_split(size)]
        ctx.rank, ctx.lengths = rank, lengths
        padded = share_ND.new_zeros(lengths[0], *share_ND.shape[1:])
        padded[: len(share_ND)] = share_ND
        parts = [torch.empty_like(padded) for _ in lengths]
        dist.all_gather(parts, padded)
        return torch.cat([part[:length] for part, length in zip(parts, lengths, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        own = gradients[0].split(ctx.lengths)[ctx.rank]
        return own * len(ctx.lengths), None, None, None


class _Sum(torch.autograd.Function):
    """The sum over processes; its gradient is the sum of their gradients."""

    @staticmethod
    def forward(ctx: Any, mine: Tensor) -> Tensor:
        total = mine.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].clone()
        dist.all_reduce(total)
        return total


class SharedBatchNorm2d(nn.BatchNorm2d):
    """Batch norm over the images of all processes, on any device (torch's own synchronised one needs CUDA)."""

    def forward(self, images_NCHW: Tensor) -> Tensor:
        if not self.training:
            return super().forward(images_NCHW)
        axes, shape = (0, 2, 3), (1, -1, 1, 1)
        count = _Sum.apply(images_NCHW.new_tensor(images_NCHW.numel() / images_NCHW.shape[1]))
        mean_C = _Sum.apply(images_NCHW.sum(axes)) / count
        centred_NCHW = images_NCHW - mean_C.view(shape)
        variance_C = _Sum.apply(centred_NCHW.square().sum(axes)) / count
        with torch.no_grad():
            assert self.num_batches_tracked is not None and self.momentum is not None
            assert self.running_mean is not None and self.running_var is not None
            self.num_batches_tracked.add_(1)
            self.running_mean.lerp_(mean_C, self.momentum)
            self.running_var.lerp_(variance_C * count / (count - 1), self.momentum)  # unbiased, as torch has it
        scale_C = self.weight * (variance_C + self.eps).rsqrt()
        return centred_NCHW * scale_C.view(shape) + self.bias.view(shape)
