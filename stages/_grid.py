"""paper/grid.yaml as dvc.yaml sees it: which stage measures which cell."""

from pathlib import Path
from typing import Any

from repro import paths
from repro.errors import BadInput
from stages._params import read_mapping

EVALUATIONS = {"cells": "evaluate", "untrained": "evaluate_untrained", "adapted": "evaluate_adapted"}


def read_grid(root: Path = Path()) -> dict[str, dict[str, Any]]:
    """Every group of lines by name; raises BadInput where a group is missing or no mapping."""
    grid = read_mapping(root / paths.GRID, "the stages of the paper")
    for group in EVALUATIONS:
        if not isinstance(grid.get(group), dict):
            message = f"{paths.GRID}: {group} is {grid.get(group)!r:.60}, expected the lines of that group by name"
            raise BadInput(f"{message}; restore it with `git checkout {paths.GRID}`")
    return grid


def evaluation_stages() -> dict[str, str]:
    """The stage that measures each cell, as `dvc repro` takes it."""
    grid = read_grid()
    return {cell: f"{stage}@{cell}" for group, stage in EVALUATIONS.items() for cell in grid[group]}
