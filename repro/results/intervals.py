"""Means over tasks with their 95 % intervals, alone and as paired differences.

Values are float64 here whatever they were stored as: sums over 10,000 tasks keep their digits.
"""

from dataclasses import dataclass

import numpy as np

from repro.errors import BadInput

NORMAL_95 = 1.96  # the paper's factor: the interval is mean ± 1.96·std/√n, std over n


@dataclass(frozen=True)
class Mean:
    """Mean and half-width of its 95 % interval, in the unit of the values; NaN where there are none."""

    mean: float
    ci: float
    tasks: int


def mean_interval(values: np.ndarray) -> Mean:
    """Mean over tasks, mean ± 1.96·std/√n; NaN values mean that the measure does not exist."""
    if not len(values):
        return Mean(float("nan"), float("nan"), 0)
    values = np.asarray(values, np.float64)
    return Mean(float(values.mean()), NORMAL_95 * float(values.std()) / len(values) ** 0.5, len(values))


def paired_difference(first: np.ndarray, second: np.ndarray) -> Mean:
    """Mean of first − second over the same tasks, task by task; raises BadInput where the numbers of tasks differ."""
    if len(first) != len(second):
        raise BadInput(f"{len(first)} and {len(second)} tasks cannot be paired; evaluate both methods on one task list")
    return mean_interval(np.asarray(first, np.float64) - np.asarray(second, np.float64))
