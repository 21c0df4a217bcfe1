"""Means with two 95 % intervals: over tasks, as the paper prints them, and the one that verdicts use.

Tasks share images, classes and a training, so an interval over tasks says how well this model on these images is known.
Verdicts ask what another replicate would give:
- three seeds or more: the seed is the unit, Student's t over the means of seeds; where the seeds share their classes
  and images (given data), what other classes and images would give is added (crossed: the variances add);
- one or two: what other classes and images would give (`layers`); training noise is not in it.

Values are float64 here whatever they were stored as: sums over 10,000 tasks keep their digits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, nan, sqrt

import numpy as np

from repro.results.contents import TaskContents
from repro.results.layers import Pulls

NORMAL_95 = 1.96  # the paper's factor: the interval is mean ± 1.96·std/√n, std over n
LEVEL = 0.05
ENOUGH_SEEDS = 3  # to let the seed be the unit
FEWEST_FREEDOM = 2.0  # that of three seeds; less would widen an interval that noise hides anyway


@dataclass(frozen=True)
class Error:
    """A standard error, the degrees of freedom of Student's distribution behind it, and what it is about."""

    size: float
    freedom: float
    covers: str

    def half_width(self, level: float = LEVEL) -> float:
        """Half-width of the two-sided interval at 1 − `level`."""
        from scipy.special import stdtrit

        return float(stdtrit(self.freedom, 1 - level / 2)) * self.size


@dataclass(frozen=True)
class Mean:
    """A mean and half the width of its interval over tasks; `error` is the one that verdicts use, found when asked for.

    `tasks` counts those of all seeds; without tasks the mean is NaN, without an error no verdict is possible.
    """

    mean: float
    ci: float
    tasks: int
    seeds: tuple[float, ...] = ()
    find_error: Callable[[], Error | None] = field(default=lambda: None, repr=False, compare=False)

    @cached_property
    def error(self) -> Error | None:
        """Found once; it costs more than all the rest."""
        return self.find_error()

    @property
    def wide(self) -> float:
        """Half-width of the 95 % interval that verdicts use; NaN where there is none."""
        return self.error.half_width() if self.error else nan

    @property
    def shown(self) -> float:
        """Half-width of the interval that a figure shows: the one that verdicts use, that over tasks where none is."""
        return self.wide if self.error else self.ci


@dataclass(frozen=True)
class Values:
    """One value per task, and what the tasks are made of where that is known."""

    values_T: np.ndarray
    contents: TaskContents | None = None


def mean_interval(values: np.ndarray) -> Mean:
    """Mean over tasks, mean ± 1.96·std/√n; NaN values mean that the measure does not exist."""
    if not len(values):
        return Mean(nan, nan, 0)
    values = np.asarray(values, np.float64)
    ci = NORMAL_95 * float(values.std()) / len(values) ** 0.5 if len(values) > 1 else nan  # one says nothing of others
    return Mean(float(values.mean()), ci, len(values))


def estimate(replicates: Sequence[Sequence[Values]], same_classes: bool = False) -> Mean:
    """The mean over replicates of a sum, each replicate a list of summands that were measured on lists of their own.

    `same_classes`: the replicates share their classes and images, only training and tasks were drawn anew.
    """
    means = [sum(float(part.values_T.mean()) for part in parts) for parts in replicates]
    pooled = [
        mean_interval(np.concatenate([part.values_T for part in parts])) for parts in zip(*replicates, strict=True)
    ]
    ci = sqrt(sum(each.ci**2 for each in pooled))
    tasks = min(each.tasks for each in pooled)
    return Mean(float(np.mean(means)), ci, tasks, tuple(means), lambda: _error(means, replicates, same_classes))


def _error(means: list[float], replicates: Sequence[Sequence[Values]], same_classes: bool) -> Error | None:
    seeds = len(means)
    known = all(part.contents for parts in replicates for part in parts)
    if seeds < ENOUGH_SEEDS:
        few = f"{('one seed', 'two seeds')[seeds - 1]}: training noise is not in it"
        return _total(_resampled(replicates, same_classes), f"{_units(replicates)}; {few}") if known else None
    between = _of_sample(float(np.var(means, ddof=1)) / seeds, seeds)
    if not same_classes:
        return _total([between], f"{seeds} seeds: training, classes, images")
    if not known:
        return _total([between], f"{seeds} seeds: training; classes and images are not in it")
    crossed = [between, *_resampled(replicates, same_classes, tasks=False)]
    return _total(crossed, f"{seeds} seeds: training; {_units(replicates)}")


def _units(replicates: Sequence[Sequence[Values]]) -> str:
    contents = [part.contents for part in replicates[0] if part.contents]
    classes = all(each.resamples_classes for each in contents)
    return "classes and images" if classes else "images, not classes: every task holds all of them"


def _resampled(
    replicates: Sequence[Sequence[Values]], same_classes: bool, tasks: bool = True
) -> list[tuple[float, float]]:
    """Variances of the mean over replicates and how well each is known: a layer at a time, and over tasks."""
    parts: list[Pulls] = []
    for lists in zip(*replicates, strict=True):
        by_seed = [
            [layer.pulls(part.values_T).scaled(1 / len(lists)) for layer in part.contents.layers]
            for part in lists
            if part.contents
        ]
        for layers in zip(*by_seed, strict=True):
            parts += [Pulls.sum(layers)] if same_classes else layers
    found = [(each.variance, each.wobble) for each in parts]
    if tasks:
        values = [part.values_T for lists in replicates for part in lists]
        found += [_of_sample(float(each.var()) / len(each) / len(replicates) ** 2, len(each)) for each in values]
    return found


def _of_sample(variance: float, size: int) -> tuple[float, float]:
    """A variance estimated from so many values, and half the variance of that estimate."""
    return variance, variance**2 / (size - 1)


def _total(variances: Sequence[tuple[float, float]], covers: str) -> Error:
    """Independent variances added; degrees of freedom after Welch and Satterthwaite."""
    total = sum(variance for variance, _ in variances)
    wobble = sum(half for _, half in variances)
    return Error(sqrt(total), max(total**2 / wobble, FEWEST_FREEDOM) if wobble > 0 else inf, covers)
