"""What each kind of stage is run with: everything that decides its result, and `machine`, which decides its speed."""

from dataclasses import dataclass
from typing import Any

from pydantic import with_config

from repro.models.device import Acceleration
from repro.options import STRICT
from repro.training.episodic import MetaTraining
from repro.training.pretrain import Pretraining
from stages.settings.machine import Machine
from stages.settings.params import Benchmark, Episodes, Named, Options, TaskList


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class Settings:
    """`code` is the content hash of the code that decides the stage's result."""

    code: str
    machine: Machine


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class ReplicateSettings(Settings):
    """Of one replicate; the file of the stage lists the `seeds` of all."""

    seed: int


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class SplitsSettings(ReplicateSettings):
    """A dataset to prepare; `options` are the named arguments of its source."""

    dataset: str
    source: str
    size: int
    options: Options


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class EpisodesSettings(ReplicateSettings):
    """The tasks of a dataset to draw."""

    dataset: str
    episodes: Episodes


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class PretrainSettings(ReplicateSettings):
    """A backbone to pre-train, or with `random` to leave at its initial weights; tasks of `way` and `shot` choose."""

    name: str
    dataset: str
    backbone: Named
    classifier: Named
    random: bool
    pretraining: Pretraining
    way: int
    shot: int
    precision: Acceleration
    threads: int


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class TrainSettings(ReplicateSettings):
    """A method to train from the backbone `pretrained`; without `training` it is taken over as it is."""

    cell: str
    dataset: str
    method: str
    shot: int
    pretrained: str
    options: Options
    training: MetaTraining | None
    selection: TaskList
    precision: Acceleration
    threads: int


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class EvaluateSettings(ReplicateSettings):
    """A method to measure; `model` is the folder that it builds on, which has one for each seed.

    `way` is the one whose numbers a dashboard shows.
    """

    cell: str
    dataset: str
    method: str
    shot: int
    model: str
    options: Options
    way: int
    ways: tuple[int, ...]
    few_shot: tuple[int, ...]
    detailed: tuple[int, ...]
    seen: bool
    overlap: tuple[int, ...]
    limit: int | None
    selection: TaskList
    benchmark: str
    threads: int


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class SummarySettings(Settings):
    """What the replicates of the experiment are summed up with; `way` is the one whose measures are shown."""

    seeds: tuple[int, ...]
    cell: str
    way: int


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class PaperSettings(Settings):
    """What the paper is rendered with; `stages` are those that measure each cell, as `dvc repro` takes them."""

    seeds: tuple[int, ...]
    benchmark: Benchmark
    datasets: tuple[str, ...]
    backbones: dict[str, str]
    form: str
    rows: tuple[str, ...]
    methods: tuple[str, ...]
    way: int
    query: int
    stages: dict[str, str]


KINDS: dict[str, type[Any]] = {
    "splits": SplitsSettings,
    "episodes": EpisodesSettings,
    "pretrain": PretrainSettings,
    "train": TrainSettings,
    "evaluate": EvaluateSettings,
    "summary": SummarySettings,
    "paper": PaperSettings,
}
