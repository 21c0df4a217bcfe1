"""Means with both intervals that an edition keeps of a cell in place of the values behind them.

They are of measures that no table, figure or claim reads task by task; `estimates.json` lies beside the folders of the
cell's seeds.
"""

import json
from dataclasses import astuple
from pathlib import Path
from typing import Any

from repro.errors import BadInput
from repro.results.intervals import Error, Mean

ESTIMATES = "estimates.json"


def as_plain(found: Mean) -> list[Any]:
    """A mean as JSON keeps it, every digit of it."""
    return [found.mean, found.ci, found.tasks, list(found.seeds), found.error and list(astuple(found.error))]


def kept_estimate(cell: Path, group: str, measure: str) -> Mean | None:
    """What the folder of a cell keeps of a measure, None where it keeps nothing."""
    file = cell / ESTIMATES
    if not file.is_file():
        return None
    try:
        plain = json.loads(file.read_bytes()).get(group, {}).get(measure)
        return None if plain is None else _mean(*plain)
    except (ValueError, TypeError, AttributeError) as error:
        raise BadInput(f"{file}: not the estimates of a cell ({error}); restore the edition again") from error


def _mean(mean: float, ci: float, tasks: int, seeds: list[float], error: list[Any] | None) -> Mean:
    found = Error(*error) if error else None
    return Mean(mean, ci, tasks, tuple(seeds), lambda: found)
