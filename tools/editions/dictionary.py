"""What CASTLE's dictionary adds: every cell that was trained without one beside the same one with it."""

from collections.abc import Iterator, Sequence

from repro.results.comparisons import RATIOS, fsl, gfsl
from repro.results.contrasts import Sampler, Term, measure
from repro.results.intervals import Mean
from repro.results.store import Cell, Reading

WAY = 5
WITH, WITHOUT = "castle", "castle_minus"
NO_DICTIONARY = RATIOS[0]
COLUMNS = {"u_u": "U→U", "hm": "HM", "cal_hm": "HM, calibrated", "ausuc": "AUSUC"}


def pairs(cells: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """Cells with a dictionary, each with the one that lacks it."""
    lacking = [cell for cell in cells if cell.method == WITHOUT or cell.variant == NO_DICTIONARY]
    return [(Cell(cell.dataset, WITH, cell.shot), cell) for cell in lacking]


def readings(cells: Sequence[Cell]) -> Iterator[Reading]:
    """What is compared task by task."""
    for pair in pairs(cells):
        yield from (_reading(cell, name) for cell in pair for name in COLUMNS)


def gains(whole: Cell, lacking: Cell, sample: Sampler) -> list[Mean | None]:
    """By how much the dictionary raises every measure, paired."""
    return [
        measure((Term(1.0, _reading(whole, name)), Term(-1.0, _reading(lacking, name))), sample) for name in COLUMNS
    ]


def _reading(cell: Cell, name: str) -> Reading:
    """Few-shot accuracy among the unseen classes alone, the others in the joint label set."""
    return fsl(cell, WAY) if name == "u_u" else gfsl(cell, WAY, name)
