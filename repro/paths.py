"""Where things lie on disk, relative to the repository's root; nothing else builds a path."""

from pathlib import Path

PARAMS = Path("params.yaml")
RUNS = Path("runs")
PAPER = Path("paper")


def dataset(name: str) -> Path:
    """Packed images, manifest and contact sheet of one dataset."""
    return Path("data") / name


def episodes(dataset_name: str) -> Path:
    """The stored tasks of one dataset, shared by all methods."""
    return Path("episodes") / dataset_name


def pretrained(name: str) -> Path:
    """One pre-trained backbone with its seen classifier."""
    return Path("models") / "pretrained" / name


def model(cell: str) -> Path:
    """The trained method of one cell: checkpoint and embeddings."""
    return Path("models") / "cells" / cell


def results(cell: str) -> Path:
    """The evaluation of one cell: per-task records and metrics."""
    return Path("results") / cell


def checkpoints(name: str) -> Path:
    """Where a training keeps what it needs to resume; outside of DVC's outs, which DVC clears before a run."""
    return Path("checkpoints") / name
