"""What tools/compare finds, as one page: what differs first, in words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path

from repro.editions.differences import Agreement, Difference
from repro.report.claim_words import WORDS
from repro.report.facts import Methods
from repro.report.measures import LABEL_SETS
from repro.report.tables import DASH, rounded, signed
from repro.report.templates import html_environment
from tools.editions.methods import known_methods

VERDICTS: tuple[Agreement, ...] = ("different", "cannot say", "equal within noise", "equal")
TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Row:
    """One number as printed; `numbers` are both sides and the difference, each with its interval, `how` it was judged.

    An interval that is not known is empty.
    """

    cell: str
    title: str
    ways: str
    labels: str
    measure: str
    numbers: tuple[tuple[str, str], ...]
    how: str


def render(found: Sequence[Difference], first: str, second: str, summary: str) -> str:
    """The page."""
    methods = known_methods()
    groups = {verdict: [_row(each, methods) for each in _of(found, verdict)] for verdict in VERDICTS}
    template = html_environment(TEMPLATES).get_template("comparison.html")
    return template.render(first=first, second=second, summary=summary, groups=groups)


def _of(found: Sequence[Difference], verdict: Agreement) -> Iterator[Difference]:
    """Those of a verdict; of what differs the largest first, all else as it came."""
    chosen = [each for each in found if each.verdict == verdict]
    yield from sorted(chosen, key=lambda each: -abs(each.difference)) if verdict == "different" else chosen


def _row(each: Difference, methods: Methods) -> Row:
    reading = each.reading
    return Row(
        reading.cell.name,
        methods.title(reading.cell),
        str(reading.way),
        LABEL_SETS.get(reading.protocol, reading.protocol),
        WORDS.get(reading.measure, reading.measure),
        (
            (_known(each.first), _known(each.first_interval, "")),
            (_known(each.second), _known(each.second_interval, "")),
            (DASH if isnan(each.difference) else signed(each.difference), _known(each.interval, "")),
        ),
        _how(each),
    )


def _known(value: float, otherwise: str = DASH) -> str:
    return otherwise if isnan(value) else rounded(value)


def _how(each: Difference) -> str:
    """What stands against what, and what the interval covers; or why nothing can be said."""
    if isnan(each.difference):
        return each.covers
    way = "task by task" if each.paired else "mean against mean"
    if isnan(each.interval):
        return f"{way}; {each.covers}" if each.covers else way
    return f"{way}; the interval covers {each.covers.replace('; ', ', and of the other side ')}"
