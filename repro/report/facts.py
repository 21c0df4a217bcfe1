"""What the report has to be told about the run: plain values, so that it depends on records and nothing else."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from repro.cards import Look, MethodCard
from repro.report.variants import varied
from repro.results.store import Cell


@dataclass(frozen=True)
class DatasetFacts:
    """Counts of one dataset. `images` gives the number of images of each role (train, val, test, seen_val, …).

    `samples` are some images of each domain (N×H×W×C, uint8), each of another class. `classes` are names in label
    order, and `pictures_of` gives images by their rows.
    """

    title: str
    seen: int
    val: int
    unseen: int
    images: Mapping[str, int]
    samples: Mapping[str, np.ndarray] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    pictures_of: Callable[[np.ndarray], np.ndarray] | None = None


# Ours by the name that a reader knows; others are shown by timm's.
BACKBONES = {
    "castle_convnet4": "Conv-4",
    "castle_convnet4_small": "Conv-4",
    "castle_resnet12": "ResNet-12",
    "castle_resnet640": "ResNet of 3 stages",
}


@dataclass(frozen=True)
class Benchmark:
    """Which data a run used. `remark` says what a reader must not conclude; `backbones` names timm's per dataset."""

    name: str
    scale: str
    remark: str = ""
    backbones: Mapping[str, str] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The mark that every caption and every page carries."""
        return f"{self.name} benchmark, scale {self.scale}"

    def backbone(self, dataset: str) -> str:
        """What tables call the backbone of a dataset, empty where it has none."""
        name = self.backbones.get(dataset, "")
        return BACKBONES.get(name, name)


# For methods that bring no looks of their own: colours that are not among those of the paper's methods.
DEFAULT_LOOKS = (
    Look("#000000", "h", "-"),
    Look("#332288", "<", "--"),
    Look("#882255", ">", "-."),
    Look("#999933", "p", ":"),
    Look("#44aa99", "d", "-"),
)


class Methods:
    """The cards of all methods, with a name and looks for those that say nothing about it."""

    def __init__(self, cards: Mapping[str, MethodCard], rows: Sequence[str] = ()) -> None:
        """Methods without looks get one of the default ones in turn, those of `rows` first."""
        self.cards = cards
        plain = [name for name in dict.fromkeys((*rows, *cards)) if self.card(name).look is None]
        self._given = {name: DEFAULT_LOOKS[place % len(DEFAULT_LOOKS)] for place, name in enumerate(plain)}

    def card(self, name: str) -> MethodCard:
        """What the method says of itself; empty where nobody knows it."""
        return self.cards.get(name, MethodCard())

    def label(self, name: str) -> str:
        """The name to print."""
        return self.card(name).label or name

    def named(self, cell: Cell) -> str:
        """The name to print of a cell's method, with the cell's variant."""
        return varied(self.label(cell.method), cell.variant)

    def title(self, cell: Cell) -> str:
        """A cell in words."""
        return f"{self.named(cell)}, {cell.dataset}, {cell.shot}-shot"

    def look(self, name: str) -> Look:
        """How figures draw it."""
        return self.card(name).look or self._given.get(name, DEFAULT_LOOKS[0])


def fill(text: str, dataset: str, datasets: Mapping[str, DatasetFacts]) -> str:
    """Put a dataset's name and counts into the braces of a title or header; unknown counts read as "all"."""
    facts = datasets.get(dataset)
    if facts is None:
        return text.format(dataset=dataset, seen="all", unseen="all")
    return text.format(dataset=facts.title, seen=facts.seen, unseen=facts.unseen)
