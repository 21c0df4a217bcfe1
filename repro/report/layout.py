"""What each table of the paper shows: its rows, its columns, and the record behind every number.

The same description drives rendering, provenance and the list of cells that have to be evaluated. Words in braces
({dataset}, {seen}, {unseen}) are filled from the data at hand.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from repro.results.paper_claims import CLASSIFIERS
from repro.results.store import Cell, Reading, Way

Best = Literal["high", "low"]
Protocol = Literal["gfsl", "fsl"]

# Rows that exist only as numbers quoted from other papers.
QUOTED_LABELS = {
    "tapnet": "TapNet",
    "mtl": "MTL",
    "metaoptnet": "MetaOptNet",
    "feat": "FEAT",
    "simpleshot": "SimpleShot",
    "ctm": "CTM",
    "leo": "LEO",
}


@dataclass(frozen=True)
class Column:
    """One column: its printed headers from the outermost in, and the reading it takes from a row's cell."""

    key: str
    headers: tuple[str, ...]
    shot: int
    protocol: Protocol
    way: Way
    measure: str
    best: Best = "high"
    variant: str = ""
    ours: bool = False  # the paper has no such column


@dataclass(frozen=True)
class Row:
    """One row; `method` is None where only a quoted number exists. `instead` swaps measures for this row."""

    key: str
    method: str | None
    label: str = ""  # the method's own, with the variant, where empty
    variant: str = ""
    cited: bool = False
    instead: tuple[tuple[str, str], ...] = ()
    ruled: bool = False  # a rule above the row, as in the paper
    ours: bool = False  # the paper has no such row


@dataclass(frozen=True)
class Table:
    """One table. Its published numbers, where there are any, stand in published.yaml under the same keys."""

    key: str
    dataset: str
    title: str
    corner: tuple[str, ...]  # what stands above the row labels, one per header level
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    backbones: bool = False  # whether the paper prints a backbone column
    takes_rows: bool = False  # whether methods that the paper lacks may stand below its rows

    def reading(self, row: Row, column: Column) -> Reading | None:
        """Where our number for this place comes from; None where there is only a quoted one."""
        if row.method is None:
            return None
        cell = Cell(self.dataset, row.method, column.shot, row.variant or column.variant)
        return Reading(cell, column.protocol, column.way, dict(row.instead).get(column.measure, column.measure))

    def readings(self, row: Row) -> Iterator[Reading]:
        """Every reading one row shows."""
        yield from (reading for column in self.columns if (reading := self.reading(row, column)))

    def cells_of(self, method: str) -> set[Cell]:
        """The cells that a row of this method reads."""
        return {reading.cell for reading in self.readings(Row(method, method))}

    def with_rows(self, methods: Sequence[str]) -> "Table":
        """The table with a row for each of these methods that it does not have already, where it takes rows."""
        known = {row.key for row in self.rows}
        added = [method for method in methods if self.takes_rows and method not in known]
        rows = (Row(method, method, ruled=method == added[0], ours=True) for method in added)
        return replace(self, rows=(*self.rows, *rows))


def _methods(*methods: str, cited: tuple[str, ...] = (), ruled: str = "") -> tuple[Row, ...]:
    return tuple(
        Row(
            name,
            None if name in QUOTED_LABELS else name,
            QUOTED_LABELS.get(name, ""),
            cited=name in cited,
            ruled=name == ruled,
        )
        for name in methods
    )


ACC, S_SU, U_SU, HM = "S∪U→S∪U", "S→S∪U", "U→S∪U", "HM Acc."
_UNSEEN, _JOINT = "{unseen} unseen classes", "{seen} seen + {unseen} unseen classes"

_DOMAIN_COLUMNS = tuple(
    Column(measure, (label,), 1, "gfsl", 5, measure)
    for measure, label in (("acc", ACC), ("s_su", S_SU), ("u_su", U_SU), ("hm", HM))
)
_ALL_MEASURES: tuple[tuple[str, str, Protocol, str], ...] = (
    (_UNSEEN, "U→U", "fsl", "u_u"),
    (_JOINT, S_SU, "gfsl", "s_su"),
    (_JOINT, U_SU, "gfsl", "u_su"),
    (_JOINT, HM, "gfsl", "hm"),
)
_ALL_COLUMNS = tuple(
    Column(f"{shot}shot_{measure}", (group, label, f"{shot}-Shot"), shot, protocol, "all", measure)
    for group, label, protocol, measure in _ALL_MEASURES
    for shot in (1, 5)
)
_FSL_COLUMNS = tuple(Column(f"{shot}shot", (f"{shot}-Shot 5-Way",), shot, "fsl", 5, "u_u") for shot in (1, 5))
_SELECTED_COLUMNS = tuple(
    Column(f"{shot}shot_selected", (f"{shot}-Shot, selected by U→U",), shot, "fsl", 5, "sel_u_u", ours=True)
    for shot in (1, 5)
)
_WAYS: tuple[tuple[str, str, Way], ...] = (("5way", "5-Way", 5), ("allway", "{unseen}-Way", "all"))
_HM_COLUMNS = tuple(
    Column(f"{name}_{shot}shot", (label, f"{shot}-Shot"), shot, "gfsl", way, "hm")
    for name, label, way in _WAYS
    for shot in (1, 5)
)
_BOUND_MEASURES: tuple[tuple[Protocol, str], ...] = (("fsl", "u_u"), ("gfsl", "hm"))
_BOUND_COLUMNS = tuple(
    Column(f"{name}_{protocol}", (label, protocol.upper()), 5, protocol, way, measure)
    for name, label, way in _WAYS
    for protocol, measure in _BOUND_MEASURES
)
_T2_MEASURES: tuple[tuple[int, str, str, Best], ...] = (
    (1, "acc", "Mean Acc. ↑", "high"),
    (1, "delta", "Δ ↓", "low"),
    (5, "acc", "Mean Acc. ↑", "high"),
    (5, "delta", "Δ ↓", "low"),
    (1, "hm", "HM Acc. ↑", "high"),
    (5, "hm", "HM Acc. ↑", "high"),
)
_T2_COLUMNS = tuple(
    Column(f"{shot}shot_{measure}", (f"{shot}-Shot", label), shot, "gfsl", 5, measure, best)
    for shot, measure, label, best in _T2_MEASURES
)
_T11_COLUMNS = tuple(
    Column(f"classifiers{count}", (str(count),), 1, "gfsl", 5, "hm", variant=variant)
    for count, variant in CLASSIFIERS.items()
)


def _ablation_columns(shot: int) -> tuple[Column, ...]:
    return (
        Column("fsl", ("FSL Mean Acc.",), shot, "fsl", 5, "u_u"),
        Column("gfsl", ("GFSL HM Acc.",), shot, "gfsl", 5, "hm"),
    )


_CITED = ("ifsl", "dfsl", "protonet", *QUOTED_LABELS)
_DOMAIN_ROWS = _methods("dfsl", "castle_minus", "castle", "acastle")
_DOMAIN_TITLE = "1-shot GFSL on {dataset} with {seen} seen and 5 unseen classes, the unseen ones of one domain"

TABLES: tuple[Table, ...] = (
    Table("T1a", "heterogeneous", _DOMAIN_TITLE, ("Measures",), _DOMAIN_COLUMNS, _DOMAIN_ROWS),
    Table("T1b", "office", _DOMAIN_TITLE, ("Measures",), _DOMAIN_COLUMNS, _DOMAIN_ROWS),
    Table(
        "T2",
        "mini",
        "GFSL on {dataset} with {seen} seen and 5 unseen classes: accuracy, loss through the joint label set, and HM",
        ("Setups", "Perf. Measures"),
        _T2_COLUMNS,
        _methods(
            "ifsl",
            "l2ml",
            "dfsl",
            "mc_knn",
            "mc_protonet",
            "protonet",
            "castle",
            "acastle",
            cited=("ifsl",),
            ruled="castle",
        ),
        takes_rows=True,
    ),
    Table(
        "T3",
        "mini",
        "GFSL on {dataset} with {seen} seen classes and all {unseen} unseen classes",
        ("Classification on", "Perf. Measures", "Setups"),
        _ALL_COLUMNS,
        _methods("l2ml", "dfsl", "mc_knn", "mc_protonet", "protonet", "castle", "acastle", ruled="castle"),
        takes_rows=True,
    ),
    Table(
        "T4",
        "tiered",
        "GFSL on {dataset} with {seen} seen classes and all {unseen} unseen classes",
        ("Classification on", "Perf. Measures", "Setups"),
        _ALL_COLUMNS,
        _methods("dfsl", "mc_knn", "mc_protonet", "protonet", "castle", "acastle", ruled="castle"),
        takes_rows=True,
    ),
    Table(
        "T5",
        "mini",
        "Few-shot classification among the unseen classes of {dataset}",
        ("Setups",),
        (*_FSL_COLUMNS, *_SELECTED_COLUMNS),
        _methods("ifsl", "dfsl", "protonet", *QUOTED_LABELS, "castle", "acastle", cited=_CITED, ruled="castle"),
        backbones=True,
    ),
    Table(
        "T6",
        "tiered",
        "Few-shot classification among the unseen classes of {dataset}",
        ("Setups",),
        (*_FSL_COLUMNS, *_SELECTED_COLUMNS),
        _methods("protonet", "ifsl", "dfsl", *QUOTED_LABELS, "castle", "acastle", cited=_CITED, ruled="castle"),
        backbones=True,
    ),
    Table(
        "T7",
        "mini",
        "CASTLE from a pre-trained backbone or from random weights, 1-shot 5-way on {dataset}",
        ("Perf. Measures",),
        _ablation_columns(1),
        (
            Row("castle", "castle", "CASTLE with pre-training"),
            Row("castle_scratch", "castle", variant="scratch"),
        ),
        notes=(
            "The FSL number the paper prints for CASTLE with pre-training is the one its T5 gives for aCASTLE.",
            "Ours without pre-training has the steps of both trainings, and the optimiser of pre-training.",
        ),
    ),
    Table(
        "T8",
        "mini",
        "HM of CASTLE and aCASTLE beside incremental learning with stored images, {dataset}",
        ("Classification on", "Setups"),
        _HM_COLUMNS,
        _methods("lwf", "icarl", "castle", "acastle"),
        notes=("Our LwF and iCaRL fine-tune the joint classifier, scale and bias; the paper's the whole network.",),
    ),
    Table(
        "T9",
        "mini",
        "HM with and without a light-weight adaptation (†) of the synthesised classifiers, {dataset}",
        ("Classification on", "Setups"),
        _HM_COLUMNS,
        _methods("castle", "castle_adapted", "acastle", "acastle_adapted"),
    ),
    Table(
        "T10",
        "mini",
        "Averaging embeddings before synthesis (Pre-AVG) or classifiers after it (Post-AVG), 5-shot 5-way on {dataset}",
        ("Perf. Measures",),
        _ablation_columns(5),
        (
            Row("castle", "castle", "CASTLE with Pre-AVG"),
            Row("castle_postavg", "castle", variant="postavg"),
        ),
    ),
    Table(
        "T11",
        "mini",
        "HM against the number of classifiers per training step, 1-shot 5-way on {dataset}",
        ("Number of classifiers",),
        _T11_COLUMNS,
        _methods("castle"),
        notes=(
            "The paper's text trains with 64 classifiers, but its headline HM in T2 is the one printed here for 128.",
        ),
    ),
    Table(
        "T12",
        "mini",
        "Distance of the 5-shot methods to an upper bound (UB) that uses every unseen image but the queries, {dataset}",
        ("Setups", "Measures"),
        _BOUND_COLUMNS,
        (*_methods("castle", "acastle"), Row("upper_bound", "upper_bound", instead=(("hm", "cal_hm"),))),
        notes=(
            "The paper prints CASTLE's 1-shot HM of T3 in the 20-way GFSL column, where the 5-shot one belongs.",
            "UB is scored by its calibrated HM, as in the paper.",
        ),
    ),
)
