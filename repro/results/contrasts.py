"""Comparing per-task values: a weighted sum of readings, paired wherever two were measured on the same tasks.

With one paired group this is the paired t-test; groups of different tasks are independent and their variances add
(Welch). Intervals are two-sided 95 %.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from repro.results.store import Reading, Sample

LEVEL = 0.05


@dataclass(frozen=True)
class Term:
    """A reading and its weight in the sum."""

    weight: float
    reading: Reading


@dataclass(frozen=True)
class Comparison:
    """It holds when the weighted sum of means lies between `low` and `high`, in points."""

    label: str
    terms: tuple[Term, ...]
    low: float = 0.0
    high: float = inf


@dataclass(frozen=True)
class Contrast:
    """A measured weighted sum: mean, standard error, degrees of freedom, number of tasks, whether all paired."""

    effect: float
    error: float
    freedom: float
    tasks: int
    paired: bool

    def interval(self, level: float = LEVEL) -> float:
        """Half-width of the two-sided interval at 1 − `level`."""
        from scipy.special import stdtrit

        return float(stdtrit(self.freedom, 1 - level / 2)) * self.error

    def holds(self, low: float, high: float) -> bool:
        """Whether the whole interval lies strictly between the bounds."""
        return self.effect - self.interval() > low and self.effect + self.interval() < high

    def fails(self, low: float, high: float, comparisons: int) -> bool:
        """Whether the interval lies outside, after Bonferroni's correction for looking at several comparisons."""
        interval = self.interval(LEVEL / comparisons)
        return self.effect + interval < low or self.effect - interval > high

    def p_value(self, low: float, high: float) -> float:
        """One-sided probability of data this far inside the bounds if the truth lay on the nearer bound."""
        from scipy.special import stdtr

        distance = min(self.effect - low, high - self.effect)
        if self.error == 0:
            return 0.0 if distance > 0 else 1.0
        return float(stdtr(self.freedom, -distance / self.error))


def measure(terms: Sequence[Term], sample: Callable[[Reading], Sample | None]) -> Contrast | None:
    """Measure a weighted sum; None where a reading is missing or has fewer than two tasks.

    Where a reading covers only the first tasks of a list, its partners are cut to those.
    """
    groups: dict[str, list[np.ndarray]] = {}
    for term in terms:
        found = sample(term.reading)
        if found is None or len(found.values) < 2:
            return None
        groups.setdefault(found.tasks, []).append(term.weight * found.values)
    return _combine([_sum(group) for group in groups.values()])


def _sum(group: list[np.ndarray]) -> np.ndarray:
    common = min(map(len, group))
    return np.sum([values[:common] for values in group], axis=0)


def _combine(groups: list[np.ndarray]) -> Contrast:
    variances = [float(group.var(ddof=1)) / len(group) for group in groups]
    total = sum(variances)
    # Welch-Satterthwaite; with one group this is n − 1.
    spread = sum(variance**2 / (len(group) - 1) for variance, group in zip(variances, groups, strict=True))
    freedom = total**2 / spread if spread > 0 else float(min(len(group) for group in groups) - 1)
    effect = float(sum(group.mean() for group in groups))
    return Contrast(effect, sqrt(total), freedom, min(len(group) for group in groups), len(groups) == 1)
