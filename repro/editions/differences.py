"""Two sets of results side by side: the difference of every number that both have, and whether noise explains it.

Task by task where both were measured on the same lists, else mean against mean. The noise is what verdicts of claims
use (seeds, or classes and images) where it is known, else the interval over tasks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import hypot, isnan, nan
from typing import Literal, Protocol

from repro.results.intervals import Mean, Values, estimate
from repro.results.store import Reading, Sample

ROUNDING = 0.005  # points: what numbers with two decimals may be off by
Agreement = Literal["equal", "equal within noise", "different", "cannot say"]


class Side(Protocol):
    """One set of results; readings name their ways by number."""

    name: str

    def readings(self) -> Sequence[Reading]:
        """Everything that it has a number of."""

    def mean(self, reading: Reading) -> Mean | None:
        """The number, None where there is none."""

    def sample(self, reading: Reading) -> Sample | None:
        """The values behind it task by task, None where only the number is known."""


@dataclass(frozen=True)
class Difference:
    """One number on both sides, each with half the width of its interval, and how they compare.

    `paired`: task by task on the same lists. What is not known is NaN.
    """

    reading: Reading
    first: float
    first_interval: float
    second: float
    second_interval: float
    difference: float
    interval: float
    paired: bool
    verdict: Agreement
    covers: str


def differences(first: Side, second: Side) -> Iterator[Difference]:
    """Compare every number that a side has, in the order of the first."""
    for reading in dict.fromkeys((*first.readings(), *second.readings())):
        yield _compare(reading, first, second)


def _compare(reading: Reading, first: Side, second: Side) -> Difference:
    ours, theirs = first.mean(reading), second.mean(reading)
    numbers = (*_number(ours), *_number(theirs))
    if ours is None or theirs is None:
        missing = (first if ours is None else second).name
        return Difference(reading, *numbers, nan, nan, False, "cannot say", f"{missing} does not have it")
    found = _paired(first.sample(reading), second.sample(reading))
    if found is not None:
        interval, covers = _noise(found)
        return Difference(reading, *numbers, found.mean, interval, True, _verdict(found.mean, interval), covers)
    apart, known = ours.mean - theirs.mean, [each for each in map(_noise, (ours, theirs)) if not isnan(each[0])]
    interval = hypot(*(size for size, _ in known)) if known else nan
    covers = "; ".join(dict.fromkeys(covers for _, covers in known)) or "neither side has an interval"
    return Difference(reading, *numbers, apart, interval, False, _verdict(apart, interval), covers)


def _paired(first: Sample | None, second: Sample | None) -> Mean | None:
    """The mean difference over the tasks that both sides measured; None where they share no list."""
    if first is None or second is None:
        return None
    replicates = []
    for seed in sorted(first.seeds.keys() & second.seeds.keys()):
        ours, theirs = first.seeds[seed], second.seeds[seed]
        common = min(len(ours.values), len(theirs.values))
        if ours.tasks == theirs.tasks and common > 1:
            contents = ours.contents or theirs.contents
            values_T = ours.values[:common] - theirs.values[:common]
            replicates.append([Values(values_T, contents.first(common) if contents else None)])
    return estimate(replicates, first.same_classes) if replicates else None


def _number(found: Mean | None) -> tuple[float, float]:
    return (found.mean, _noise(found)[0]) if found else (nan, nan)


def _noise(found: Mean) -> tuple[float, str]:
    """Half the width of the interval that counts, and what it covers."""
    return (found.wide, found.error.covers) if found.error else (found.ci, "" if isnan(found.ci) else "tasks")


def _verdict(difference: float, interval: float) -> Agreement:
    if difference == 0:
        return "equal"
    if isnan(interval) or isnan(difference):
        return "cannot say"
    return "equal within noise" if abs(difference) <= max(interval, ROUNDING) else "different"
