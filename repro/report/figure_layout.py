"""What each figure of the paper shows. F1-F4 are diagrams, F5 shows images, F6-F11 are drawn from records.

Words in braces are filled from the data at hand, as in the tables' layout.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from repro.results.paper_claims import RATIOS, SWEEP
from repro.results.store import Cell, Reading, Way

DIAGRAMS = {
    "F1": (
        "Few-shot learning tells the unseen classes of a task apart; generalised few-shot learning tells them apart "
        "from each other and from the {seen} seen classes of {dataset}, all at once"
    ),
    "F2": (
        "Inference: CASTLE joins the many-shot classifiers with synthesised ones; aCASTLE synthesises both from one "
        "dictionary, which the task itself extends"
    ),
    "F3": (
        "How the images of {dataset} are split: blue is the usual few-shot data, red the extra images of seen classes "
        "that a generalised evaluation needs"
    ),
    "F4": "The harmonic mean: seen and unseen queries are scored apart, both in the joint label set, on {dataset}",
}
SAMPLES_KEY = "F5"
SAMPLES_DATASETS = ("heterogeneous", "office")
SAMPLES_TITLE = (
    "Images of the two multi-domain datasets: on heterogeneous a class belongs to one domain, on office every class "
    "has images in all of them"
)


# How a figure is drawn: bars before and after calibration, seen-unseen curves, lines over ways, a line over the size
# of the dictionary, bars of three kinds of classifiers.
Drawing = Literal["calibration", "curves", "sweep", "dictionary", "classifiers"]


@dataclass(frozen=True)
class Line:
    """One bar group, line or curve: the cell behind it, and its label, which is its method's own where empty."""

    cell: Cell
    label: str = ""
    ours: bool = False  # the paper has no such line


@dataclass(frozen=True)
class Figure:
    """One figure drawn from records: `ways` is its x axis or its panels, `measures` what it shows of each line."""

    key: str
    name: str  # of its files
    title: str
    drawing: Drawing
    lines: tuple[Line, ...]
    protocol: Literal["gfsl", "fsl", "seen"]
    ways: tuple[Way, ...]
    measures: tuple[str, ...]
    takes_rows: bool = False  # whether methods that the paper lacks may stand beside its own

    @property
    def wide(self) -> bool:
        """Whether it needs the whole width of a page."""
        return self.drawing == "curves"

    @property
    def dataset(self) -> str:
        """The dataset that its title speaks of."""
        return self.lines[0].cell.dataset

    def cells_of(self, method: str) -> set[Cell]:
        """The cells that a line of this method reads."""
        return {replace(self.lines[0].cell, method=method)}

    def with_rows(self, methods: Sequence[str]) -> "Figure":
        """The figure with a line for each of these methods that it does not have already, where it takes any."""
        known = {line.cell.method for line in self.lines}
        added = [method for method in methods if self.takes_rows and method not in known]
        lines = (Line(cell, ours=True) for method in added for cell in self.cells_of(method))
        return replace(self, lines=(*self.lines, *lines))

    def readings(self) -> Iterator[Reading]:
        """Every reading the figure shows."""
        for line in self.lines:
            for way in self.ways:
                for measure in self.measures:
                    yield Reading(line.cell, self.protocol, way, measure)


def _mini(*methods: str) -> tuple[Line, ...]:
    return tuple(Line(Cell("mini", method, 1)) for method in methods)


_COMPARED = ("mc_knn", "mc_protonet", "protonet", "l2ml", "dfsl", "ifsl", "castle", "acastle")
_BALANCED = ("protonet", "l2ml", "dfsl", "ifsl", "castle", "acastle")

FIGURES = (
    Figure(
        "F6",
        "F6_calibration",
        "HM before and after calibration, 1-shot 5-way on {dataset}",
        "calibration",
        _mini(*_COMPARED),
        "gfsl",
        (5,),
        ("hm", "cal_hm"),
        takes_rows=True,
    ),
    Figure(
        "F7",
        "F7_ausuc",
        "Seen against unseen accuracy for every calibration bias, 1-shot on {dataset}; the area is the AUSUC",
        "curves",
        _mini(*_COMPARED),
        "gfsl",
        (5, "all"),
        ("ausuc",),
        takes_rows=True,
    ),
    Figure(
        "F8",
        "F8_ways",
        "HM against the number of unseen classes, 1-shot on {dataset}; MC + kNN and MC + ProtoNet, which ignore the "
        "unseen classes, are left out as in the paper",
        "sweep",
        _mini(*_BALANCED),
        "gfsl",
        SWEEP,
        ("hm",),
        takes_rows=True,
    ),
    Figure(
        "F9",
        "F9_ways_calibrated",
        "Calibrated HM against the number of unseen classes, 1-shot on {dataset}",
        "sweep",
        _mini(*_COMPARED),
        "gfsl",
        SWEEP,
        ("cal_hm",),
        takes_rows=True,
    ),
    Figure(
        "F10",
        "F10_dictionary",
        "Accuracy among 5 unseen classes against the size of the shared dictionary, as a multiple of the {seen} seen "
        "classes; 1-shot CASTLE on {dataset}",
        "dictionary",
        tuple(Line(Cell("mini", "castle", 1, variant), str(ratio)) for ratio, variant in RATIOS.items()),
        "fsl",
        (5,),
        ("u_u",),
    ),
    Figure(
        "F11",
        "F11_seen",
        "{seen}-way accuracy on seen classes of {dataset}: prototypes of the trained ProtoNet, classifiers that CASTLE "
        "synthesises from one image per class (vanilla: trained without the seen ones), and many-shot classifiers",
        "classifiers",
        (
            *_mini("protonet"),
            Line(Cell("mini", "castle", 1, "vanilla"), "CASTLE (vanilla)"),
            *_mini("castle", "acastle"),
        ),
        "seen",
        ("any",),
        ("proto_s", "syn_s", "many_s"),
    ),
)
