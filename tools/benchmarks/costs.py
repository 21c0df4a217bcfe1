"""What the paper's whole grid costs: operations, bytes, stages and steps, counted from its settings without running it.

Operations of a backbone are counted by torch on tensors without content; a multiplication and an addition are two.
Steps, batches and lines come from tools/scales/paper.yaml and paper/grid.yaml. Hours are operations at a stated speed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from repro.methods.registry import method_class
from repro.models import create_backbone
from stages._grid import read_grid
from stages._params import Params, read_params
from stages.shared.models import EXEMPLARS
from stages.shared.training import without_pretraining

ROOT = Path(__file__).resolve().parents[2]
SPEED = 50e12  # operations a second: an A100 at a sixth of its bf16 peak, a guess for 84-pixel images
FLOAT, DIM = 4, 640
CHECKPOINT_COPIES = 3  # weights, best weights, momentum
# Images of train, val, test, seen_val and seen_test. Mini: 600 per class and 2 × 200 new ones per seen class. Tiered
# (Ren et al., 2018): 2 × 200 of each seen class held out. Heterogeneous: 50 per class, 15 more per seen class. Office-
# Home: its 13,161 images of the three domains in proportion to the classes of a split, 10 per domain of a seen class
# held out.
IMAGES = {
    "mini": (38_400, 9_600, 12_000, 12_800, 12_800),
    "tiered": (308_295, 124_261, 206_209, 70_200, 70_200),
    "heterogeneous": (5_000, 5_000, 5_000, 700, 800),
    "office": (4_312, 3_037, 5_062, 375, 375),
}
SEEN_CLASSES = {"mini": 64, "tiered": 351, "heterogeneous": 100, "office": 25}


@dataclass(frozen=True)
class Backbone:
    """Operations per image forward and in a training step, trainable weights, and bytes kept for the backward pass."""

    forward: int
    step: int
    weights: int
    kept: int


@dataclass(frozen=True)
class Training:
    """One training stage: its steps, images per step, the bytes that a step keeps for its backward pass, operations of
    the steps, and of validation and embedding.
    """

    dataset: str
    steps: int
    images: int
    kept: int
    trained: float
    embedded: float


@cache
def backbone(name: str, size: int) -> Backbone:
    """Count one image's pass through a backbone."""
    with torch.device("meta"):
        network, _ = create_backbone(name, 3)
        images = torch.empty(2, 3, size, size)
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage()._cdata] = 0 if isinstance(tensor, nn.Parameter) else tensor.nbytes
        return tensor

    with FlopCounterMode(display=False) as counter, torch.autograd.graph.saved_tensors_hooks(keep, lambda one: one):
        features = network(images)
        forward = counter.get_total_flops()
        features.sum().backward()
    weights = sum(one.numel() for one in network.parameters())
    return Backbone(forward // 2, counter.get_total_flops() // 2, weights, sum(kept.values()) // 2)


def settings() -> tuple[Params, dict[str, dict[str, Any]]]:
    """The paper's scale and the grid."""
    return read_params(ROOT / "tools" / "scales" / "paper.yaml"), read_grid(ROOT)


def backbone_of(dataset: str, params: Params) -> Backbone:
    return backbone(params.backbones[dataset].name, params.datasets[dataset].size)


def stored_rows(dataset: str) -> int:
    """Images that every model embeds: all but `train`, and exemplars of it."""
    return sum(IMAGES[dataset][1:]) + EXEMPLARS * SEEN_CLASSES[dataset]


def steps_per_epoch(dataset: str, params: Params) -> int:
    return IMAGES[dataset][0] // params.pretraining.batch


def pretrainings(params: Params, lines: Iterable[dict[str, Any]]) -> Iterator[Training]:
    """Every line that is trained; after each epoch the images of the validation tasks are embedded."""
    for line in lines:
        dataset, batch = line["dataset"], params.pretraining.batch
        unit, epochs = backbone_of(dataset, params), 0 if line.get("random") else params.pretraining.epochs[dataset]
        episodes, selection = params.episodes[dataset], params.measuring.selection
        drawn = episodes.calibration * selection.way * (1 + episodes.query)
        steps = epochs * steps_per_epoch(dataset, params)
        embedded = epochs * min(drawn, IMAGES[dataset][1]) + stored_rows(dataset)
        trained = float(steps) * batch * unit.step
        yield Training(dataset, steps, batch, batch * unit.kept, trained, float(embedded) * unit.forward)


def meta_trainings(params: Params, grid: dict[str, dict[str, Any]]) -> Iterator[Training]:
    """Every cell; a backbone that does not learn embeds the training images once instead of passing every step's.

    From random weights the steps of pre-training come on top.
    """
    for line in grid["cells"].values():
        cell, dataset = line["cell"], line["cell"]["dataset"]
        chosen, unit = params.methods[cell["method"]], backbone_of(dataset, params)
        options = {**chosen.options, **cell.get("options", {})}
        method = method_class(cell["method"])(nn.Linear(1, 1), DIM, SEEN_CLASSES[dataset], **options)
        spec, training = method.batch_spec(cell["shot"]), chosen.training
        assert spec is not None and training is not None
        images = spec.tasks * spec.classes * (spec.shot + spec.queries) + spec.free
        if grid["pretrained"][line["pretrained"]].get("random"):
            steps = params.pretraining.epochs[dataset] * steps_per_epoch(dataset, params)
            optimisation = params.pretraining.optimisation.model_dump()
            training = without_pretraining(training, {"steps": steps, "optimisation": optimisation})
        learns = any(one.requires_grad for one in method.backbone.parameters())
        validations = -(-training.steps // training.validate_every)
        rows = validations * (IMAGES[dataset][1] + IMAGES[dataset][3]) + stored_rows(dataset)
        rows += 0 if learns else IMAGES[dataset][0]
        trained = float(training.steps) * images * unit.step if learns else 0.0
        kept = images * unit.kept if learns else 0
        yield Training(dataset, training.steps, images, kept, trained, float(rows) * unit.forward)


def measured_tasks(params: Params, grid: dict[str, dict[str, Any]]) -> Iterator[tuple[int, int]]:
    """Ways and number of test tasks of every cell and way that is measured."""
    for line in [*grid["cells"].values(), *grid["untrained"].values(), *grid["adapted"].values()]:
        stored = {entry.way: entry.tasks for entry in params.episodes[line["cell"]["dataset"]].test}
        for way in line["measure"]["ways"]:
            number = max(stored) if way == "all" else way
            yield number, stored[number]
