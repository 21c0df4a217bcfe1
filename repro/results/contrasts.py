"""Comparing readings: a weighted sum of them, paired within a seed wherever two were measured on the same tasks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np

from repro.results.intervals import LEVEL, Mean, Values, estimate
from repro.results.store import Reading, Replicate, Sample

Verdict = Literal["holds", "tied", "fails", "cannot say"]
Sampler = Callable[[Reading], Sample | None]


@dataclass(frozen=True)
class Term:
    """A reading and its weight in the sum."""

    weight: float
    reading: Reading


@dataclass(frozen=True)
class Comparison:
    """It holds when the weighted sum of means lies between `low` and `high`, in points.

    Where `tie` is given, a sum that is certainly no farther than that from `low` is a tie.
    """

    label: str
    terms: tuple[Term, ...]
    low: float = 0.0
    high: float = inf
    tie: float = 0.0

    def clearance(self, value: float) -> float:
        """How far inside the bounds a value lies; negative outside of them."""
        return min(value - self.low, self.high - value)

    def judge(self, found: Mean | None, failing: int = 1, holding: int = 1) -> Verdict:
        """Say where the interval lies; Bonferroni's correction for several ways of failing, or of holding."""
        if found is None or found.error is None:
            return "cannot say"
        wide, wider, widest = (found.error.half_width(LEVEL / ways) for ways in (1, holding, failing))
        if found.mean - wider > self.low and found.mean + wider < self.high:
            return "holds"
        if self.low - self.tie < found.mean - wide and found.mean + wide < self.low + self.tie:
            return "tied"
        outside = found.mean + widest < self.low or found.mean - widest > self.high
        return "fails" if outside else "cannot say"


def measure(terms: Sequence[Term], sample: Sampler) -> Mean | None:
    """Measure a weighted sum on the seeds that all its readings have.

    None where there is no such seed or a reading has fewer than two tasks. Where a reading covers only the first tasks
    of a list, its partners are cut to those.
    """
    samples = [sample(term.reading) for term in terms]
    found = [each for each in samples if each is not None]
    if len(found) < len(terms):
        return None
    seeds = sorted(set.intersection(*(set(each.seeds) for each in found)))
    replicates = [_summands(terms, [each.seeds[seed] for each in found]) for seed in seeds]
    if not replicates or any(len(part.values_T) < 2 for parts in replicates for part in parts):
        return None
    return estimate(replicates, any(each.same_classes for each in found))


def _summands(terms: Sequence[Term], replicates: list[Replicate]) -> list[Values]:
    lists: dict[str, list[tuple[float, Replicate]]] = {}
    for term, replicate in zip(terms, replicates, strict=True):
        lists.setdefault(replicate.tasks, []).append((term.weight, replicate))
    return [_paired(group) for group in lists.values()]


def _paired(group: list[tuple[float, Replicate]]) -> Values:
    common = min(len(replicate.values) for _, replicate in group)
    contents = group[0][1].contents
    values_T = np.sum([weight * replicate.values[:common] for weight, replicate in group], axis=0)
    return Values(values_T, contents.first(common) if contents else None)
