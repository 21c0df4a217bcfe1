"""A loss over many tasks without holding them all in memory.

The mean over tasks is a sum over chunks, so each chunk's gradient is taken and its activations let go before the next
one starts: memory is one chunk's, work is the same, and what is live fits the processor's cache.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

ChunkLoss = Callable[..., Tensor]


def mean_over_chunks(loss_of: ChunkLoss, tasks: Tensor, chunk: int, *inputs: Tensor) -> Tensor:
    """The mean over `tasks` (first dimension) of `loss_of(some_tasks, *inputs)`, itself a mean over its tasks.

    Differentiable once in `inputs`. `loss_of` must reach whatever learns through them alone.
    """
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs):
        loss = _ChunkedMean.apply(loss_of, tasks, chunk, *inputs)
        assert isinstance(loss, Tensor)
        return loss
    losses = [loss_of(part, *inputs) * (len(part) / len(tasks)) for part in tasks.split(chunk)]
    return torch.stack(losses).sum()


class _ChunkedMean(torch.autograd.Function):
    """Gradients are known by the end of the forward pass; backward only scales them."""

    @staticmethod
    def forward(ctx: Any, loss_of: ChunkLoss, tasks: Tensor, chunk: int, *inputs: Tensor) -> Tensor:
        leaves = [tensor.detach().requires_grad_(tensor.requires_grad) for tensor in inputs]
        learning = [leaf for leaf in leaves if leaf.requires_grad]
        gradients = [torch.zeros_like(leaf) for leaf in learning]
        total = torch.zeros((), dtype=inputs[0].dtype, device=inputs[0].device)
        for part in tasks.split(chunk):
            with torch.enable_grad():
                loss = loss_of(part, *leaves) * (len(part) / len(tasks))
            total += loss.detach()
            for gradient, piece in zip(gradients, torch.autograd.grad(loss, learning), strict=True):
                gradient.add_(piece)
        ctx.save_for_backward(*gradients)
        ctx.learns = [leaf.requires_grad for leaf in leaves]
        return total

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        gradients = iter(ctx.saved_tensors)
        return None, None, None, *(next(gradients) * upstream[0] if learns else None for learns in ctx.learns)
