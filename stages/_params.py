"""params.yaml, checked as a whole before any stage begins: unknown keys, wrong types and names that lead nowhere.

Numbers are chosen in params.yaml alone; here is only what shape they have.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from repro.errors import BadInput

Count = Annotated[int, Field(ge=1, le=10**9)]
Number = Annotated[int, Field(ge=0, le=10**9)]
Positive = Annotated[float, Field(gt=0, lt=1e9)]
Share = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
Options = dict[str, Any]

MOST_BYTES = 1 << 20


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
    workers: Number  # decoding threads; 0: one per core
    checkpoint_every: Count
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
    """So many test tasks of so many ways.

    `few_shot` measures them among their own classes too, `detailed` adds MAP and confidences, which cost most.
    """

    way: Count
    tasks: Count
    few_shot: bool = False
    detailed: bool = False


class EpisodeParams(Strict):
    """The stored tasks of a dataset, drawn for every shot; validation tasks of the first list's ways select models."""

    shots: Annotated[list[Count], Field(min_length=1)]
    query: Count
    test: Annotated[list[TaskList], Field(min_length=1)]
    calibration: Count
    selection: Count
    seen: Number  # tasks over the seen classes themselves; 0: none


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

    crop_padding: Number = 0
    resized_crop: Share = 0.0
    flip: bool = False
    jitter: Share = 0.0


class BackboneParams(Strict):
    """A timm model that gives pooled features."""

    name: str
    options: Options = {}


class PretrainedParams(Strict):
    """One pre-trained backbone; `epochs: 0` leaves it at its random initial weights."""

    dataset: Name
    backbone: BackboneParams
    classifier: str
    classifier_options: Options = {}
    epochs: Number
    batch: Count
    label_smoothing: Share
    optimisation: OptimisationParams
    augmentation: AugmentationParams = AugmentationParams()


class TrainingParams(Strict):
    """Meta-training of a method."""

    steps: Count
    validate_every: Count
    batch_norm: str
    optimisation: OptimisationParams
    augmentation: AugmentationParams = AugmentationParams()


class MethodParams(Strict):
    """A method's options, its training where it has one, and how many tasks it is measured on where not all.

    `pretraining` names the pre-trained backbone it starts from: <dataset>-<pretraining>. `base`: the method whose
    trained model it adapts.
    """

    pretraining: Name = "linear"
    base: Name | None = None
    options: Options = {}
    training: TrainingParams | None = None
    limit: Count | None = None


class Cell(Strict):
    """One measured method. `pretrained`: the backbone it starts from."""

    dataset: Name
    method: Name
    shot: Count
    pretrained: Name
    options: Options = {}


class AdaptedCell(Strict):
    """A method measured on the trained model of another cell, `base`, whose method is `base_method`."""

    dataset: Name
    method: Name
    shot: Count
    base: Name
    base_method: Name


class Params(Strict):
    """All of params.yaml."""

    seed: Number
    benchmark: BenchmarkParams
    dataset: Name
    method: Name
    shot: Count
    way: Count
    machine: Machine
    precision: Precision
    datasets: dict[Name, DatasetParams]
    episodes: dict[Name, EpisodeParams]
    pretrained: dict[Name, PretrainedParams]
    methods: dict[Name, MethodParams]
    cells: dict[Name, Cell]
    untrained: dict[Name, Cell]
    adapted: dict[Name, AdaptedCell]
    paper: PaperParams

    @model_validator(mode="after")
    def _names_lead_somewhere(self) -> "Params":
        problems = _unknown("dataset", "", {self.dataset}, self.datasets)
        problems += _unknown("method", "", {self.method}, self.methods)
        problems += _unknown("episodes", "", set(self.datasets) ^ set(self.episodes), {})
        for name, pretrained in self.pretrained.items():
            problems += _unknown("dataset", f"pretrained.{name}.", {pretrained.dataset}, self.datasets)
        for group, cells in (("cells", self.cells), ("untrained", self.untrained), ("adapted", self.adapted)):
            for name, cell in cells.items():
                problems += _unknown("dataset", f"{group}.{name}.", {cell.dataset}, self.datasets)
                problems += _unknown("method", f"{group}.{name}.", {cell.method}, self.methods)
                if isinstance(cell, Cell):
                    problems += _unknown("pretrained", f"{group}.{name}.", {cell.pretrained}, self.pretrained)
                else:
                    problems += _unknown("base", f"{group}.{name}.", {cell.base}, self.cells)
            for name, cell in cells.items():
                problems += self._unstored(f"{group}.{name}.", cell.dataset, cell.shot)
        problems += self._unstored("", self.dataset, self.shot)
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _unstored(self, where: str, dataset: str, shot: int) -> list[str]:
        stored = self.episodes[dataset].shots if dataset in self.episodes else [shot]
        if shot in stored:
            return []
        return [
            f"{where}shot is {shot}, {dataset} has stored tasks of {stored} shots; add it to episodes.{dataset}.shots"
        ]


def _unknown(key: str, where: str, names: set[str], known: Any) -> list[str]:
    expected = f"expected one of {', '.join(known)}" if known else "expected the same names as in datasets"
    return [f"{where}{key} is {name!r}, {expected}" for name in sorted(names - set(known))]


class _PlainLoader(yaml.SafeLoader):
    """Plain YAML only: an alias could make a small file huge, and a key given twice would hide its first value."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            line = self.peek_event().start_mark.line + 1
            raise yaml.YAMLError(f"line {line} has an alias (*name); write the value out")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = [key for place, key in enumerate(keys) if key in keys[:place]]
        if twice:
            raise yaml.YAMLError(f"line {node.start_mark.line + 1}: the key {twice[0]!r} is given twice")
        return super().construct_mapping(node, deep)


def read_params(file: Path) -> Params:
    """Read and check a parameter file; raises BadInput with everything that is wrong with it."""
    try:
        if file.stat().st_size > MOST_BYTES:
            raise BadInput(f"{file}: has {file.stat().st_size} bytes, expected at most {MOST_BYTES}")
        content = yaml.load(file.read_text(encoding="utf-8"), _PlainLoader)
    except OSError as error:
        raise BadInput(f"{file}: cannot be read ({error.strerror}); expected the parameters of the pipeline") from error
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError, ValueError, TypeError) as error:
        raise BadInput(f"{file}: not plain YAML ({' '.join(str(error).split())}); correct that line") from error
    if not isinstance(content, dict):
        raise BadInput(f"{file}: holds {type(content).__name__}, expected keys such as seed, datasets and cells")
    try:
        return Params.model_validate(content)
    except ValidationError as error:
        raise BadInput(f"{file}: {'; '.join(map(_sentence, error.errors()))}") from error


def _sentence(problem: Any) -> str:
    place = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    if problem["type"] == "extra_forbidden":
        return f"unknown key {place}; remove it or correct its spelling"
    if problem["type"] == "missing":
        return f"{place} is missing"
    seen = repr(problem["input"])
    return f"{place} is {seen if len(seen) < 60 else seen[:57] + '...'}, expected: {problem['msg'].lower()}"


def named(kind: str, arguments: list[str], known: Any) -> str:
    """The one name on a stage's command line; raises BadInput where it is missing or leads nowhere in params.yaml."""
    given = arguments[1:]
    if len(given) != 1 or given[0] not in known:
        raise BadInput(f"got {' '.join(given) or 'no name'}, expected one {kind} of params.yaml: {', '.join(known)}")
    return given[0]
