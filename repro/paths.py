"""Where things lie on disk, relative to the repository's root; nothing else builds a path."""

from pathlib import Path

PARAMS = Path("params.yaml")
LOCK = Path("dvc.lock")
RUNS = Path("runs")
PAPER = Path("paper")
GRID = PAPER / "grid.yaml"
ALL_RESULTS = Path("results") / "cells"
EXPERIMENT = "experiment"  # the name under which the experiment at the top of params.yaml runs


def dataset(name: str) -> Path:
    """Packed images, manifest and contact sheet of one dataset."""
    return Path("data") / name


def episodes(dataset_name: str) -> Path:
    """The stored tasks of one dataset, shared by all methods."""
    return Path("episodes") / dataset_name


def tasks(dataset_name: str, split: str, way: int | None, shot: int) -> Path:
    """One list of them; without a way, tasks over the seen classes themselves."""
    kind = "seen" if way is None else f"{way}way"
    return episodes(dataset_name) / split / f"{kind}-{shot}shot.safetensors"


def pretrained(name: str) -> Path:
    """One pre-trained backbone with its seen classifier."""
    return Path("models") / "pretrained" / name


def model(cell: str) -> Path:
    """The trained method of one cell of the paper's grid, or of the experiment that a user varies."""
    return Path("models") / _place(cell)


def results(cell: str) -> Path:
    """Its evaluation: per-task records and metrics."""
    return Path("results") / _place(cell)


def _place(cell: str) -> Path:
    """The experiment lies apart from the grid, so that the paper does not depend on it."""
    return Path(cell) if cell == EXPERIMENT else Path("cells") / cell


def checkpoints(name: str) -> Path:
    """Where a training keeps what it needs to resume; outside of DVC's outs, which DVC clears before a run."""
    return Path("checkpoints") / name


def code(name: str) -> Path:
    """Content hashes of code that many stages share."""
    return Path(".code") / f"{name}.sha256"
