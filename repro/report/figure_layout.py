"""What each figure of the paper shows. F1-F4 are diagrams, F5 shows images, F6-F11 are drawn from records.

Words in braces are filled from the data at hand, as in the tables' layout.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from repro.report.layout import METHOD_LABELS
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
SAMPLES_TITLE = (
    "Images of the two multi-domain datasets: on heterogeneous a class belongs to one domain, on office every class "
    "has images in all of them"
)


@dataclass(frozen=True)
class Line:
    """One bar group, line or curve: its label, the cell behind it, and the method that owns its colour."""

    label: str
    cell: Cell
    method: str


@dataclass(frozen=True)
class Figure:
    """One figure drawn from records: `ways` is its x axis or its panels, `measures` what it shows of each line."""

    key: str
    name: str  # of its files
    title: str
    lines: tuple[Line, ...]
    protocol: Literal["gfsl", "fsl", "seen"]
    ways: tuple[Way, ...]
    measures: tuple[str, ...]

    def readings(self) -> Iterator[Reading]:
        """Every reading the figure shows."""
        for line in self.lines:
            for way in self.ways:
                for measure in self.measures:
                    yield Reading(line.cell, self.protocol, way, measure)


def _mini(*methods: str) -> tuple[Line, ...]:
    return tuple(Line(METHOD_LABELS[method], Cell("mini", method, 1), method) for method in methods)


_COMPARED = ("mc_knn", "mc_protonet", "protonet", "l2ml", "dfsl", "ifsl", "castle", "acastle")
_BALANCED = ("protonet", "l2ml", "dfsl", "ifsl", "castle", "acastle")

FIGURES = (
    Figure(
        "F6",
        "F6_calibration",
        "HM before and after calibration, 1-shot 5-way on {dataset}",
        _mini(*_COMPARED),
        "gfsl",
        (5,),
        ("hm", "cal_hm"),
    ),
    Figure(
        "F7",
        "F7_ausuc",
        "Seen against unseen accuracy for every calibration bias, 1-shot on {dataset}; the area is the AUSUC",
        _mini(*_COMPARED),
        "gfsl",
        (5, "all"),
        ("ausuc",),
    ),
    Figure(
        "F8",
        "F8_ways",
        "HM against the number of unseen classes, 1-shot on {dataset}; MC + kNN and MC + ProtoNet, which ignore the "
        "unseen classes, are left out as in the paper",
        _mini(*_BALANCED),
        "gfsl",
        SWEEP,
        ("hm",),
    ),
    Figure(
        "F9",
        "F9_ways_calibrated",
        "Calibrated HM against the number of unseen classes, 1-shot on {dataset}",
        _mini(*_COMPARED),
        "gfsl",
        SWEEP,
        ("cal_hm",),
    ),
    Figure(
        "F10",
        "F10_dictionary",
        "Accuracy among 5 unseen classes against the size of the shared dictionary, as a multiple of the {seen} seen "
        "classes; 1-shot CASTLE on {dataset}",
        tuple(Line(str(ratio), Cell("mini", "castle", 1, variant), "castle") for ratio, variant in RATIOS.items()),
        "fsl",
        (5,),
        ("u_u",),
    ),
    Figure(
        "F11",
        "F11_seen",
        "{seen}-way accuracy on seen classes of {dataset}: prototypes and synthesised classifiers from one image per "
        "class, and the many-shot classifier",
        _mini("castle", "acastle"),
        "seen",
        ("any",),
        ("proto_s", "syn_s", "many_s"),
    ),
)
