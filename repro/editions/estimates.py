"""Means that editions keep of a cell, of several editions as one."""

import json
from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from repro.errors import BadInput
from repro.results.intervals import NORMAL_95, Mean, Values, estimate
from repro.results.kept_estimates import ESTIMATES


def read_estimates(cell: Path) -> dict[str, dict[str, Any]]:
    """What the folder of a cell keeps, by group and measure; most keep nothing."""
    file = cell / ESTIMATES
    try:
        found: dict[str, dict[str, Any]] = json.loads(file.read_bytes()) if file.is_file() else {}
        return {group: dict(measures) for group, measures in found.items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(f"{file}: not the estimates of a cell ({error}); restore the edition again") from error


def joined(parts: Sequence[Mean], same_classes: bool) -> Mean:
    """The mean over the seeds of all parts. `same_classes`: they share classes and images, which are then not in it."""
    of_seeds = estimate([[Values(np.array([seed]))] for part in parts for seed in part.seeds], same_classes)
    tasks = sum(part.tasks for part in parts)
    over_tasks = sum(part.tasks * part.mean for part in parts) / tasks
    variances = [part.ci**2 * part.tasks / NORMAL_95**2 + (part.mean - over_tasks) ** 2 for part in parts]
    variance = sum(part.tasks * each for part, each in zip(parts, variances, strict=True)) / tasks
    return Mean(of_seeds.mean, NORMAL_95 * sqrt(variance / tasks), tasks, of_seeds.seeds, of_seeds.find_error)
