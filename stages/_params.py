"""params.yaml, checked as a whole before any stage begins: unknown keys, wrong types and names that lead nowhere.

Numbers are chosen in params.yaml alone; here is only what shape they have.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from repro.errors import BadInput, one_line
from repro.options import sentence

Count = Annotated[int, Field(ge=1, le=10**9)]
Number = Annotated[int, Field(ge=0, le=10**9)]
Positive = Annotated[float, Field(gt=0, lt=1e9)]
Share = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
Way = Count | Literal["all"]  # all: as many ways as there are unseen classes
Options = dict[str, Any]

MOST_BYTES = 1 << 20
MOST_DRAWN = 10**9  # images of a task list, each as often as it is drawn; the paper's longest list has 5·10⁷


class Strict(BaseModel):
    """No unknown keys, no silent conversions, nothing changes afterwards."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class BenchmarkParams(Strict):
    """Which data and scale a run has; every caption names them. `remark` says what must not be concluded."""

    name: str
    scale: str
    remark: str


class PaperParams(Strict):
    """How the paper is rendered."""

    form: Literal["ours", "beside"]


class Resources(Strict):
    """What `tools/cluster` reserves for a stage; part of a GPU lets several stages share it."""

    num_cpus: Count = 1
    num_gpus: Annotated[float, Field(ge=0, lt=1e6)] = 0.0


class Machine(Strict):
    """What a machine has; it decides speed, not results."""

    device: str
    memory_mb: Count
    workers: Annotated[int, Field(ge=0, le=1024)]  # decoding threads; 0: one per core
    checkpoint_every: Count
    processes: Count = 1
    nodes: Count = 1
    endpoint: str = ""
    # By the stage's name before the @. Left out of dumps: no stage gets to know it, so no record does.
    resources: dict[Name, Resources] = Field(default={}, exclude=True)


class Precision(Strict):
    """How the backbone computes while training."""

    amp: Literal["none", "bf16", "fp16"]
    channels_last: bool
    compile: bool


class DatasetParams(Strict):
    """Where a dataset comes from; `options` are the named arguments of its source."""

    source: str
    size: Annotated[int, Field(ge=8, le=1024)]
    options: Options


class TaskList(Strict):
    """So many test tasks of so many ways."""

    way: Count
    tasks: Count


class EpisodeParams(Strict):
    """The stored tasks of a dataset, drawn for every shot."""

    shots: Annotated[list[Count], Field(min_length=1)]
    query: Count
    test: Annotated[list[TaskList], Field(min_length=1)]
    calibration: Count
    seen: Number  # tasks over the seen classes themselves; 0: none

    @model_validator(mode="after")
    def _lists_fit_into_memory(self) -> "EpisodeParams":
        for entry in self.test:
            tasks = max(entry.tasks, self.calibration, self.seen)
            drawn = tasks * entry.way * (max(self.shots) + 2 * self.query)
            if drawn > MOST_DRAWN:
                message = f"{tasks} tasks of {entry.way} ways, {max(self.shots)} shots and {self.query} queries"
                raise ValueError(f"{message} draw {drawn} images, expected at most {MOST_DRAWN}; lower one of them")
        return self


class MeasuringParams(Strict):
    """How methods are measured on the stored tasks.

    Validation tasks of `selection` choose weights and options. Tasks of the ways in `few_shot` are measured among their
    own classes too; those in `detailed` get MAP and confidences, which cost most.
    """

    selection: TaskList
    few_shot: list[Way]
    detailed: list[Way]


class ScheduleParams(Strict):
    """A learning-rate schedule by name, with its options."""

    name: str
    options: Options = {}


class OptimisationParams(Strict):
    """Momentum SGD."""

    lr: Positive
    schedule: ScheduleParams
    momentum: Share
    weight_decay: Share
    nesterov: bool = False
    clip: Annotated[float, Field(ge=0, lt=1e9)] = 0.0


class AugmentationParams(Strict):
    """What happens to a training image on the device."""

    crop_padding: Annotated[int, Field(ge=0, le=1024)] = 0
    resized_crop: Share = 0.0
    flip: bool = False
    jitter: Share = 0.0


class BackboneParams(Strict):
    """A timm model that gives pooled features."""

    name: str
    options: Options = {}


class ClassifierParams(Strict):
    """The many-shot classifier that a backbone is pre-trained with."""

    name: str
    options: Options = {}


class PretrainingSettings(Strict):
    """What all pre-trainings have in common."""

    batch: Count
    label_smoothing: Share
    optimisation: OptimisationParams
    augmentation: AugmentationParams


class PretrainingParams(PretrainingSettings):
    """How every backbone is pre-trained: for some epochs by dataset, with one of the classifiers."""

    epochs: dict[Name, Count]
    classifiers: dict[Name, ClassifierParams]


class TrainingParams(Strict):
    """Meta-training of a method."""

    steps: Count
    validate_every: Count
    batch_norm: str
    optimisation: OptimisationParams
    augmentation: AugmentationParams = AugmentationParams()


class MethodParams(Strict):
    """A method's options, its training where it has one, and how many tasks it is measured on (0: all)."""

    options: Options
    limit: Number
    training: TrainingParams | None = None


class Params(Strict):
    """All of params.yaml."""

    seed: Number
    threads: Annotated[int, Field(ge=1, le=1024)]
    benchmark: BenchmarkParams
    dataset: Name
    method: Name
    shot: Count
    way: Count
    machine: Machine
    precision: Precision
    datasets: dict[Name, DatasetParams]
    episodes: dict[Name, EpisodeParams]
    measuring: MeasuringParams
    pretraining: PretrainingParams
    backbones: dict[Name, BackboneParams]
    methods: dict[Name, MethodParams]
    paper: PaperParams

    @model_validator(mode="after")
    def _names_lead_somewhere(self) -> "Params":
        problems = unknown("dataset", self.dataset, self.datasets) + unknown("method", self.method, self.methods)
        for group, names in (
            ("episodes", self.episodes),
            ("backbones", self.backbones),
            ("pretraining.epochs", self.pretraining.epochs),
        ):
            problems += [
                f"{group}: {name!r} is in it or in datasets, expected in both"
                for name in sorted(set(names) ^ set(self.datasets))
            ]
        if self.dataset in self.episodes:
            problems += unstored(self.episodes[self.dataset], self.dataset, self.shot)
        if problems:
            raise ValueError("; ".join(problems))
        return self


def unknown(place: str, name: str, known: Any) -> list[str]:
    """What is wrong with a name that leads nowhere, as a sentence; nothing where it is known."""
    return [] if name in known else [f"{place} is {name!r}, expected one of {', '.join(known)}"]


def unstored(episodes: EpisodeParams, dataset: str, shot: int) -> list[str]:
    """The same of a shot without stored tasks."""
    if shot in episodes.shots:
        return []
    stored = f"{dataset} has stored tasks of {episodes.shots} shots"
    return [f"shot is {shot}, {stored}; add it to episodes.{dataset}.shots"]


class _PlainLoader(yaml.SafeLoader):
    """Plain YAML only: an alias could make a small file huge, and a key given twice would hide its first value.

    A tag (!!set, !!binary) could make a value of a type that plain YAML does not have.
    """

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        line = event.start_mark.line + 1
        if isinstance(event, yaml.events.AliasEvent):
            raise yaml.YAMLError(f"line {line} has an alias (*name); write the value out")
        if getattr(event, "tag", None) is not None:
            raise yaml.YAMLError(f"line {line} has a tag ({event.tag}); write the value without it")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = [key for place, key in enumerate(keys) if key in keys[:place]]
        if twice:
            raise yaml.YAMLError(f"line {node.start_mark.line + 1}: the key {twice[0]!r} is given twice")
        return super().construct_mapping(node, deep)


def plain_yaml(text: str, place: str) -> Any:
    """What plain YAML says; raises BadInput, which begins with `place`, for anything that is not plain."""
    try:
        return yaml.load(text, _PlainLoader)
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        raise BadInput(f"{place}: not plain YAML ({one_line(error)}); correct that line") from error


def read_mapping(file: Path, expected: str) -> dict[Any, Any]:
    """Read a YAML file of the user's whose outermost level is a mapping; raises BadInput."""
    try:
        if file.stat().st_size > MOST_BYTES:
            raise BadInput(f"{file}: has {file.stat().st_size} bytes, expected at most {MOST_BYTES}")
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{file}: cannot be read ({error.strerror}); expected {expected}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file}: not plain YAML ({error}); expected {expected}") from error
    content = plain_yaml(text, str(file))
    if not isinstance(content, dict):
        raise BadInput(f"{file}: holds {type(content).__name__}, expected {expected}")
    return content


def read_params(file: Path) -> Params:
    """Read and check a parameter file; raises BadInput with everything that is wrong with it."""
    content = read_mapping(file, "the parameters of the pipeline, with keys such as seed, datasets and methods")
    try:
        return Params.model_validate(content)
    except ValidationError as error:
        raise BadInput(f"{file}: {'; '.join(map(sentence, error.errors()))}") from error
