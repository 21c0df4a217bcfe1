"""paper/grid.yaml as dvc.yaml sees it: which stage measures which cell."""

from typing import Any

import yaml

from repro import paths

EVALUATIONS = {"cells": "evaluate", "untrained": "evaluate_untrained", "adapted": "evaluate_adapted"}


def read_grid() -> dict[str, dict[str, Any]]:
    """Every group of lines by name."""
    grid: dict[str, dict[str, Any]] = yaml.safe_load(paths.GRID.read_text(encoding="utf-8"))
    return grid


def evaluation_stages() -> dict[str, str]:
    """The stage that measures each cell, as `dvc repro` takes it."""
    return {cell: f"{stage}@{cell}" for group, stage in EVALUATIONS.items() for cell in read_grid()[group]}
