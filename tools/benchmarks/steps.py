"""The whole training step of CASTLE and aCASTLE: backbone, head and optimiser, forward and backward.

Both sides pass the step's 152 images (24 classes, one shot, 128 queries) through the backbone once, as the released
code does too, so this ratio says what the head's (see `heads.py`) is worth beside a ResNet-12 at 84×84 pixels. The
backbone is timed on a few images on both sides and scaled by their number; ours computes channels last.
"""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from repro.data.seeding import generator
from repro.methods.acastle import ACastle
from repro.methods.base import EmbeddedBatch
from repro.methods.castle import Castle
from repro.models import create_backbone
from repro.models.device import PLAIN
from repro.training.optim import Optimisation
from tools.benchmarks.heads import CLASSES, QUERIES, example, reference_loss
from tools.benchmarks.timing import Part, interleaved_parts, threads

SIZE, FEW_IMAGES, THREADS, CLASSIFIERS = 84, 8, 2, 64
CASES: dict[str, type[Castle] | type[ACastle]] = {"step_castle_64": Castle, "step_acastle_64": ACastle}


def bench_steps(name: str, repeats: int) -> dict[str, float]:
    """Medians over interleaved repeats, in seconds of a step: ours_s, reference_s and ratio."""
    torch.manual_seed(0)
    plain, _ = create_backbone("castle_resnet12", 3)
    fast = copy.deepcopy(plain)
    PLAIN.place(fast, torch.device("cpu"))
    images_NCHW = torch.randn(FEW_IMAGES, 3, SIZE, SIZE)
    times = (CLASSES + QUERIES) / FEW_IMAGES
    channels_last = images_NCHW.contiguous(memory_format=torch.channels_last)
    backbone = Part(lambda: _pass(fast, channels_last), lambda: _pass(plain, images_NCHW), times, times)
    method, batch = example(CASES[name], CLASSIFIERS)
    head = Part(
        lambda: method.loss(batch, generator(0, "tasks")).backward(),
        lambda: reference_loss(method, batch, generator(0, "tasks")).backward(),
    )
    ours, reference = (_updating(nn.ModuleList([network, method])) for network in (fast, plain))
    with threads(THREADS):
        return interleaved_parts([backbone, head, Part(ours, reference)], repeats)


def _pass(backbone: nn.Module, images_NCHW: Tensor) -> None:
    backbone(images_NCHW).sum().backward()


def _updating(model: nn.Module) -> Callable[[], object]:
    groups = [{"name": "all", "params": list(model.parameters()), "lr_scale": 1.0}]
    optimiser = Optimisation(1e-4).optimiser(model, groups)
    return optimiser.step


def reference_step(
    method: Castle | ACastle,
    images_NCHW: Tensor,
    batch_of: Callable[[Tensor], EmbeddedBatch],
    draws: torch.Generator,
    *,
    lr: float,
) -> float:
    """One whole step, plainly: forward, the released formulation of the loss, SGD with momentum; gives the loss."""
    optimiser = torch.optim.SGD([one for one in method.parameters() if one.requires_grad], lr, momentum=0.9)
    loss = reference_loss(method, batch_of(method.backbone(images_NCHW)), draws)
    loss.backward()
    optimiser.step()
    return loss.item()
