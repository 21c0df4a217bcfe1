"""Which cells the paper needs: everything its tables, figures and claims read."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from repro.report.claim_words import calibrated
from repro.report.figure_layout import Figure
from repro.report.layout import Table
from repro.report.rows import with_rows
from repro.results.claims import Claim
from repro.results.paper_claims import CLAIMS, DESCRIBED
from repro.results.store import Cell, Reading, Way


@dataclass(frozen=True)
class CellNeed:
    """One cell with the protocols and ways that are read of it, and who reads them."""

    cell: Cell
    protocols: frozenset[tuple[str, Way]]
    needed_by: tuple[str, ...]


def required_cells(rows: Sequence[str] = ()) -> list[CellNeed]:
    """Every cell behind the tables, figures and claims, sorted by name; `rows` are methods that the paper lacks."""
    return cells_behind(*with_rows(rows))


def cells_behind(
    tables: Sequence[Table],
    figures: Sequence[Figure],
    claims: Sequence[Claim] = CLAIMS,
    evaluated: Callable[[Cell], bool] = lambda _: False,
) -> list[CellNeed]:
    """Every cell behind these tables, figures and claims, sorted by name.

    What the claims' second verdict looks at is not needed, but counts where it was evaluated.
    """
    readers: dict[Cell, list[tuple[str, Reading]]] = {}
    for reader, reading in read_by(tables, figures, claims, evaluated):
        readers.setdefault(reading.cell, []).append((reader, reading))
    return [
        CellNeed(
            cell,
            frozenset((reading.protocol, reading.way) for _, reading in wanted),
            tuple(dict.fromkeys(reader for reader, _ in wanted)),
        )
        for cell, wanted in sorted(readers.items(), key=lambda item: item[0].name)
    ]


def with_further(needs: Sequence[CellNeed], cells: Sequence[Cell]) -> list[CellNeed]:
    """These needs and, for cells that nothing needs, an entry without a reader."""
    known = {need.cell for need in needs}
    return [*needs, *(CellNeed(cell, frozenset(), ()) for cell in cells if cell not in known)]


def read_by(
    tables: Sequence[Table],
    figures: Sequence[Figure],
    claims: Sequence[Claim],
    evaluated: Callable[[Cell], bool],
) -> Iterator[tuple[str, Reading]]:
    """Everything that is read task by task, with the key of the table, figure or claim that reads it."""
    yield from _shown(tables, figures)
    yield from _judged(claims, evaluated)


def shown_datasets(rows: Sequence[str] = ()) -> list[str]:
    """The datasets that a table, figure or claim shows: only these need to be described to the report."""
    return sorted({need.cell.dataset for need in required_cells(rows)})


def _shown(tables: Sequence[Table], figures: Sequence[Figure]) -> Iterator[tuple[str, Reading]]:
    for table in tables:
        for row in table.rows:
            yield from ((table.key, reading) for reading in table.readings(row))
    for figure in figures:
        yield from ((figure.key, reading) for reading in figure.readings())


def _judged(claims: Sequence[Claim], evaluated: Callable[[Cell], bool]) -> Iterator[tuple[str, Reading]]:
    for claim in claims:
        further = (reading for reading in claim.further_readings() if evaluated(reading.cell))
        for reading in chain(claim.readings(), further):
            yield claim.key, reading
            if other := calibrated(reading):  # where it fails, it is looked at after calibration, too
                yield claim.key, other
    yield from ((number.key, number.reading) for number in DESCRIBED)
