"""Every measure of every evaluation, with both intervals, also those that the paper's tables leave out."""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from typing import Any

from repro.files import check_seal
from repro.report.distributions import key_of
from repro.report.tables import rounded
from repro.results.records import group_name
from repro.results.store import Cell, Reading, Results

# Measure → how the report heads its column.
MEASURE_LABELS = {
    "hm": "HM",
    "cal_hm": "HM cal.",
    "map_hm": "MAP HM",
    "acc": "Acc",
    "delta": "Δ",
    "ausuc": "AUSUC",
    "s_s": "S→S",
    "u_u": "U→U",
    "sel_u_u": "U→U sel.",
    "s_su": "S→S∪U",
    "u_su": "U→S∪U",
    "syn_s": "S→S synth.",
    "proto_s": "S→S proto.",
    "many_s": "S→S many-shot",
}
# Protocol → what its queries can be taken for; simulated overlaps are left out.
LABEL_SETS = {"gfsl": "seen and unseen", "fsl": "unseen", "seen": "seen"}


@dataclass(frozen=True)
class MeasuresRow:
    """One cell at one number of classes, its numbers in the order of MEASURE_LABELS; None where one was not taken."""

    cell: str
    protocol: str
    way: int
    tasks: int
    seeds: int
    values: tuple["Measure | None", ...]


@dataclass(frozen=True)
class Measure:
    """A mean with half the width of its intervals over tasks, and over seeds or classes and images; NaN for none."""

    key: str
    mean: float
    tasks: float
    wide: float

    @property
    def shown(self) -> tuple[str, str, str]:
        """As printed; an interval that there is none of is empty."""
        mean, tasks, wide = ("" if isnan(value) else rounded(value) for value in (self.mean, self.tasks, self.wide))
        return mean, tasks, wide


def view_measures(results: Results, cells: Iterable[Cell]) -> list[MeasuresRow]:
    """A row for every evaluation of these cells that has records."""
    return [_row(results, cell, *group) for cell in cells for group in evaluations(results, cell)]


def evaluations(results: Results, cell: Cell) -> list[tuple[str, int]]:
    """Protocol and ways of everything that a cell was evaluated on."""
    records = results.cell(cell)
    return [(protocol, way) for protocol in LABEL_SETS for way in records.ways(protocol)] if records else []


def _row(results: Results, cell: Cell, protocol: str, way: int) -> MeasuresRow:
    readings = [Reading(cell, protocol, way, measure) for measure in MEASURE_LABELS]
    found = [(reading, results.estimate(reading)) for reading in readings]
    folders = list(results.folders(cell).values())
    # What one seed's classes and images are worth, its evaluation has worked out; several seeds tell it themselves.
    stored = _stored(folders[0], group_name(protocol, way)) if len(folders) == 1 else None
    values = tuple(
        Measure(key_of(reading), one.mean, one.ci, one.wide if stored is None else stored.get(reading.measure, nan))
        if one
        else None
        for reading, one in found
    )
    seeds = max((len(one.seeds) for _, one in found if one), default=0)
    return MeasuresRow(cell.name, protocol, way, max((one.tasks for _, one in found if one), default=0), seeds, values)


def _stored(folder: Path, group: str) -> dict[str, float]:
    """The intervals over classes and images in the metrics beside the records, by measure."""
    check_seal(folder, "metrics.json")
    metrics: dict[str, Any] = json.loads((folder / "metrics.json").read_bytes()).get(group, {})
    return {name: of["ci_images"] for name, of in metrics.items() if isinstance(of, dict) and "ci_images" in of}


def as_csv(rows: Sequence[MeasuresRow]) -> str:
    """All of it as a table for other programs, tools/compare among them: a line per evaluation and measure."""
    stream = io.StringIO()
    lines = csv.writer(stream, lineterminator="\n")
    lines.writerow(["cell", "protocol", "way", "tasks", "seeds", "measure", "mean", "interval", "interval_tasks"])
    for row in rows:
        for measure, one in zip(MEASURE_LABELS, row.values, strict=True):
            if one:
                numbers = ("" if isnan(value) else f"{value:.4f}" for value in (one.mean, one.wide, one.tasks))
                lines.writerow([row.cell, row.protocol, row.way, row.tasks, row.seeds, measure, *numbers])
    return stream.getvalue()
