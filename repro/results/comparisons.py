"""The words that claims are written in: readings, "a above b", "a leads all of these"."""

from collections.abc import Sequence
from math import inf

from repro.results.contrasts import Comparison, Term
from repro.results.store import Cell, Reading, Way

TIE = 0.5  # points: "best" and "larger" by certainly less than this is called a tie
VARIANTS = ("castle", "acastle")
# Rows of ours that the paper does not have, or not with every measure.
OUR_ROWS = ("ifsl", "l2ml_plus", "nearest_mean", "teen")
SHOTS = (1, 5)
WAYS: tuple[Way, ...] = (5, "all")
SWEEP: tuple[Way, ...] = (5, 10, 15, 20)
# Option → variant of the cell; the main cell has none.
RATIOS = {0: "ratio0", 1: "ratio1", 2: "", 3: "ratio3", 4: "ratio4"}
CLASSIFIERS = {count: f"classifiers{count}" for count in (1, 64, 128, 256)}


def gfsl(cell: Cell, way: Way, measure: str) -> Reading:
    """A measure of the joint tasks."""
    return Reading(cell, "gfsl", way, measure)


def fsl(cell: Cell, way: Way, measure: str = "u_u") -> Reading:
    """Accuracy among the unseen classes alone."""
    return Reading(cell, "fsl", way, measure)


def seen(cell: Cell, measure: str) -> Reading:
    """Accuracy of tasks over the seen classes themselves."""
    return Reading(cell, "seen", "any", measure)


def name(reading: Reading) -> str:
    """A reading in a word or two."""
    way = "" if reading.way == "any" else f" {reading.way}-way"
    return f"{reading.cell.name}{way} {reading.measure}"


def difference(first: Reading, second: Reading, low: float, high: float = inf, tie: float = 0.0) -> Comparison:
    """`first` minus `second`, between `low` and `high` points; certainly within `tie` of `low` is a tie."""
    return Comparison(f"{name(first)} − {name(second)}", (Term(1.0, first), Term(-1.0, second)), low, high, tie)


def above(first: Reading, second: Reading) -> Comparison:
    """`first` larger than `second`; certainly within half a point is a tie."""
    return difference(first, second, 0.0, tie=TIE)


def within(reading: Reading, low: float, high: float) -> Comparison:
    """A mean between two numbers."""
    return Comparison(name(reading), (Term(1.0, reading),), low, high)


def besides(rows: Sequence[str], named: Sequence[str]) -> list[str]:
    """The rows that a sentence does not name."""
    return [row for row in rows if row not in named]


def leads(
    others: Sequence[str], dataset: str, leaders: Sequence[str], shot: int, way: Way, measure: str
) -> tuple[Comparison, ...]:
    """Every leader better than every other method; Δ is better where it is lower."""
    read = fsl if measure == "u_u" else gfsl
    pairs = [
        (read(Cell(dataset, leader, shot), way, measure), read(Cell(dataset, other, shot), way, measure))
        for leader in leaders
        for other in others
    ]
    return tuple(above(rest, best) if measure == "delta" else above(best, rest) for best, rest in pairs)
