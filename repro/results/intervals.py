"""Means over tasks with their 95 % intervals; `contrasts` compares two of them.

Values are float64 here whatever they were stored as: sums over 10,000 tasks keep their digits.
"""

from dataclasses import dataclass

import numpy as np

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
