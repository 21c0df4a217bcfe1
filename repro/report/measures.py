"""Every measure of every joint evaluation, also those that the paper's tables leave out: a row per cell and ways."""

from collections.abc import Iterable
from dataclasses import dataclass

from repro.report.tables import rounded
from repro.results.store import Cell, Reading, Results

# Measure → how the report heads its column.
MEASURES = {
    "hm": "HM",
    "cal_hm": "HM cal.",
    "map_hm": "MAP HM",
    "acc": "Acc",
    "delta": "Δ",
    "ausuc": "AUSUC",
    "s_s": "S→S",
    "u_u": "U→U",
    "s_su": "S→S∪U",
    "u_su": "U→S∪U",
}


@dataclass(frozen=True)
class MeasuresRow:
    """One cell with so many unseen classes; a measure that was not taken is None."""

    cell: str
    way: int
    tasks: int
    values: tuple[str | None, ...]


def view_measures(results: Results, cells: Iterable[Cell]) -> list[MeasuresRow]:
    """A row for every joint evaluation of these cells that has records."""
    return [
        _row(results, cell, way) for cell in cells if (records := results.cell(cell)) for way in records.ways("gfsl")
    ]


def _row(results: Results, cell: Cell, way: int) -> MeasuresRow:
    found = [results.estimate(Reading(cell, "gfsl", way, measure)) for measure in MEASURES]
    tasks = max((one.tasks for one in found if one), default=0)
    return MeasuresRow(cell.name, way, tasks, tuple(one if one is None else rounded(one.mean) for one in found))
