"""What the paper's whole grid costs: operations, bytes, stages and steps, counted from its settings without running it.

Operations of a backbone are counted by torch on tensors without content; a multiplication and an addition are two.
Steps, batches and cells come from the settings of the scale `paper`. Hours are operations at a stated speed.
"""

from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from repro import paths
from repro.methods.base import BatchSpec
from repro.methods.registry import method_class
from repro.models import create_backbone
from repro.options import checked
from repro.trained.folders import EXEMPLARS
from stages.settings import scales
from stages.settings.grid import Grid
from stages.settings.kinds import EpisodesSettings, EvaluateSettings, PretrainSettings, SplitsSettings, TrainSettings
from stages.settings.params import Params
from stages.settings.resolving import Resolver

ROOT = Path(__file__).resolve().parents[2]
SPEED = 50e12  # operations a second: an A100 at a sixth of its bf16 peak, a guess for 84-pixel images
FLOAT, DIM = 4, 640
CHECKPOINT_COPIES = 4  # weights, momentum, and the best weights of two measures
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


def batch_of(settings: Any, seen: int) -> tuple[BatchSpec, bool]:
    """What a step of a method's training draws, and whether its backbone learns."""
    method = method_class(settings.method)(nn.Linear(1, 1), DIM, seen, **settings.options)
    spec = method.batch_spec(settings.shot)
    assert spec is not None  # it has a training
    return spec, any(one.requires_grad for one in method.backbone.parameters())


def images_of(spec: BatchSpec) -> int:
    """The images of a step."""
    return spec.tasks * spec.classes * (spec.shot + spec.queries) + spec.free


def planned() -> list[Any]:
    """What every stage of the grid at the paper's scale is run with."""
    texts = {file: (ROOT / file).read_text() for file in scales.CHOSEN}
    with chdir(ROOT):
        scaled = scales.scaled("paper", texts)
        params = checked(Params, scales.read(scaled[paths.PARAMS]), str(paths.PARAMS))
        grid = checked(Grid, scales.read(scaled[paths.GRID]), str(paths.GRID))
        every = Resolver(params, grid, ROOT).all()
        return [settings for _, name, settings in every if name != paths.EXPERIMENT]


def stored_rows(dataset: str) -> int:
    """Images that every model embeds: all but `train`, and exemplars of it."""
    return sum(IMAGES[dataset][1:]) + EXEMPLARS * SEEN_CLASSES[dataset]


class Costs:
    """The grid's trainings and tasks, counted from its settings.

    Trainings are those on the paper's datasets: of others nobody has said how many images they have.
    """

    def __init__(self, settings: list[Any]) -> None:
        known = [each for each in settings if getattr(each, "dataset", None) in IMAGES]
        self.of_pretraining = [each for each in known if isinstance(each, PretrainSettings)]
        self.of_training = [each for each in known if isinstance(each, TrainSettings)]
        self.of_evaluation = [each for each in settings if isinstance(each, EvaluateSettings)]
        self.episodes = {each.dataset: each.episodes for each in settings if isinstance(each, EpisodesSettings)}
        self.sizes = {each.dataset: each.size for each in settings if isinstance(each, SplitsSettings)}
        self.by_name = {each.name: each for each in self.of_pretraining}

    def backbone(self, dataset: str) -> Backbone:
        """One image's pass through the backbone of a dataset."""
        return backbone(self.by_name[f"{dataset}-standard"].backbone.name, self.sizes[dataset])

    def pretrainings(self) -> Iterator[Training]:
        """Every backbone that is trained; after each epoch the images of the validation tasks are embedded."""
        for each in self.of_pretraining:
            dataset, pretraining, unit = each.dataset, each.pretraining, self.backbone(each.dataset)
            epochs = 0 if each.random else pretraining.epochs
            episodes = self.episodes[dataset]
            drawn = episodes.calibration * each.way * (1 + episodes.query)
            steps = epochs * (IMAGES[dataset][0] // pretraining.batch)
            embedded = epochs * min(drawn, IMAGES[dataset][1]) + stored_rows(dataset)
            trained = float(steps) * pretraining.batch * unit.step
            kept = pretraining.batch * unit.kept
            yield Training(dataset, steps, pretraining.batch, kept, trained, float(embedded) * unit.forward)

    def meta_trainings(self) -> Iterator[Training]:
        """Every cell; a backbone that does not learn embeds the training images once instead of every step's.

        From random weights the steps of pre-training come on top.
        """
        for each in self.of_training:
            dataset, training, start = each.dataset, each.training, self.by_name[each.pretrained]
            unit, (spec, learns) = self.backbone(dataset), batch_of(each, SEEN_CLASSES[dataset])
            images = images_of(spec)
            assert training is not None
            if start.random:
                steps = start.pretraining.epochs * (IMAGES[dataset][0] // start.pretraining.batch)
                training = training.from_random_weights(steps, start.pretraining)
            validations = -(-training.steps // training.validate_every)
            rows = validations * (IMAGES[dataset][1] + IMAGES[dataset][3]) + 2 * stored_rows(dataset)
            rows += 0 if learns else IMAGES[dataset][0]
            trained = float(training.steps) * images * unit.step if learns else 0.0
            kept = images * unit.kept if learns else 0
            yield Training(dataset, training.steps, images, kept, trained, float(rows) * unit.forward)

    def measured_tasks(self) -> Iterator[tuple[int, int]]:
        """Ways and number of test tasks of every cell and way that is measured."""
        for each in self.of_evaluation:
            stored = {entry.way: entry.tasks for entry in self.episodes[each.dataset].test}
            yield from ((way, stored[way]) for way in each.ways)
