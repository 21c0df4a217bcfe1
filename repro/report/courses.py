"""The course of every training, thinned so that a page can draw it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import with_config

from repro.options import STRICT
from repro.results.store import Cell, Results
from repro.results.trainings import read_training

POINTS = 120  # of a drawn loss


@with_config(STRICT)
@dataclass(frozen=True)
class Course:
    """One seed's training: step and loss, as means over neighbouring steps, and step and value of each validation."""

    seed: int
    measure: str  # that was validated
    loss: tuple[tuple[float, float], ...]
    validation: tuple[tuple[int, float], ...]


def view_courses(results: Results, cells: Iterable[Cell]) -> dict[str, tuple[Course, ...]]:
    """By name of the cell, an entry per seed; cells whose training is not known are left out."""
    every = {cell.name: [_course(seed, folder) for seed, folder in results.folders(cell).items()] for cell in cells}
    return {name: found for name, courses in every.items() if (found := tuple(one for one in courses if one))}


def _course(seed: int, folder: Path) -> Course | None:
    columns = read_training(folder)
    if not columns or not len(columns["step"]):
        return None
    measure = next(name for name in columns if name not in ("step", "loss", "lr"))
    parts = np.array_split(np.arange(len(columns["step"])), min(POINTS, len(columns["step"])))
    validated = np.flatnonzero(~np.isnan(columns[measure]))
    return Course(
        seed,
        measure,
        tuple((_mean(columns["step"][part]), _mean(columns["loss"][part])) for part in parts),
        tuple((int(columns["step"][at]), round(float(columns[measure][at]), 2)) for at in validated),
    )


def _mean(values: np.ndarray) -> float:
    return round(float(values.mean()), 4)
