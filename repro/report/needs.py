"""Which cells the paper needs: everything its tables, figures and claims read."""

from collections.abc import Iterator
from dataclasses import dataclass

from repro.report.figure_layout import FIGURES
from repro.report.layout import TABLES
from repro.results.paper_claims import CLAIMS
from repro.results.store import Cell, Reading, Way


@dataclass(frozen=True)
class CellNeed:
    """One cell with the protocols and ways that are read of it, and who reads them."""

    cell: Cell
    protocols: frozenset[tuple[str, Way]]
    needed_by: tuple[str, ...]


def required_cells() -> list[CellNeed]:
    """Every cell behind the tables, figures and claims, sorted by name."""
    readers: dict[Cell, list[tuple[str, Reading]]] = {}
    for reader, reading in _all_readings():
        readers.setdefault(reading.cell, []).append((reader, reading))
    return [
        CellNeed(
            cell,
            frozenset((reading.protocol, reading.way) for _, reading in wanted),
            tuple(dict.fromkeys(reader for reader, _ in wanted)),
        )
        for cell, wanted in sorted(readers.items(), key=lambda item: item[0].name)
    ]


def _all_readings() -> Iterator[tuple[str, Reading]]:
    for table in TABLES:
        for row in table.rows:
            for column in table.columns:
                if reading := table.reading(row, column):
                    yield table.key, reading
    for figure in FIGURES:
        for reading in figure.readings():
            yield figure.key, reading
    for claim in CLAIMS:
        for reading in claim.readings():
            yield claim.key, reading
