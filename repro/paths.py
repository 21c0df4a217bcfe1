"""Where things lie on disk, relative to the repository's root; nothing else builds a path.

What a seed decides lies in a folder of that seed's: the folder of a dataset, model or cell has one for each replicate.
Without a seed, a function gives the folder of them all.
"""

from pathlib import Path

PARAMS = Path("params.yaml")
LOCK = Path("dvc.lock")
EVALUATIONS = Path("evaluate") / "dvc.yaml"  # the stages that measure the cells of the grid
EVALUATIONS_LOCK = EVALUATIONS.with_suffix(".lock")
RUNS = Path("runs")
SETTINGS = Path("settings")
PAPER = Path("paper")
GRID = PAPER / "grid.yaml"
TUNED = PAPER / "tuning.json"  # the settings and budgets that validation tasks chose, with the numbers that chose them
ALL_RESULTS = Path("results") / "cells"
ORIGIN = "origin.json"  # beside what a stage made: what it was made from
EXPERIMENT = "experiment"  # the name under which the experiment at the top of params.yaml runs
SUMMARY = Path("results") / EXPERIMENT  # its numbers over all seeds


def settings(stage: str, name: str) -> Path:
    """What one stage is run with."""
    return SETTINGS / stage / f"{name}.json"


def dataset(name: str, seed: int | None = None) -> Path:
    """Packed images, manifest and contact sheet of one dataset."""
    return replicate(Path("data") / name, seed)


def episodes(dataset_name: str, split: str, seed: int | None = None) -> Path:
    """The stored tasks of one dataset, shared by all methods."""
    return replicate(Path("episodes") / dataset_name / split, seed)


def task_list(way: int | None, shot: int) -> str:
    """The name of one list of them; without a way, tasks over the seen classes themselves."""
    kind = "seen" if way is None else f"{way}way"
    return f"{kind}-{shot}shot.safetensors"


def tasks(dataset_name: str, split: str, way: int | None, shot: int, seed: int) -> Path:
    """The file of one list."""
    return episodes(dataset_name, split, seed) / task_list(way, shot)


def pretrained(name: str, seed: int | None = None) -> Path:
    """One pre-trained backbone with its seen classifier."""
    return replicate(Path("models") / "pretrained" / name, seed)


def model(cell: str, seed: int | None = None) -> Path:
    """The trained method of one cell of the paper's grid, or of the experiment that a user varies.

    The experiment lies apart from the grid, so that the paper does not depend on it.
    """
    return replicate(Path("models") / EXPERIMENT if cell == EXPERIMENT else Path("models") / "cells" / cell, seed)


def results(cell: str, seed: int | None = None) -> Path:
    """Its evaluation: per-task records and metrics."""
    return replicate(SUMMARY / "replicates" if cell == EXPERIMENT else ALL_RESULTS / cell, seed)


def replicate(folder: Path, seed: int | None) -> Path:
    """The part of a folder that one seed decides."""
    return folder if seed is None else folder / str(seed)


def checkpoints(name: str, seed: int) -> Path:
    """Where a training keeps what it needs to resume; outside of DVC's outs."""
    return Path("checkpoints") / f"{name}-{seed}"


def trial(name: str, key: str) -> Path:
    """What one training of `tools/tune` measured on validation tasks; `key` stands for all that decides it."""
    return Path("tuning") / name / f"{key}.json"
