"""params.yaml, checked as a whole: unknown keys, wrong types and names that lead nowhere.

The library's own dataclasses are the schema where it has one. Numbers are chosen in params.yaml alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator, with_config
from pydantic_core import PydanticCustomError

from repro.errors import BadInput
from repro.models.device import Acceleration
from repro.options import STRICT, checked
from repro.training.pretrain import Pretraining
from stages.settings.machine import Count, Machine, Name
from stages.settings.yaml_files import read_mapping

Number = Annotated[int, Field(ge=0, le=10**9)]


def _one_of_both(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """Name the place once, where pydantic would name it for each thing that a way can be."""
    try:
        return read(value)
    except ValidationError:
        raise PydanticCustomError("way", "a number of ways from 1, or all") from None


# all: as many ways as there are unseen classes
Way = Annotated[Count | Literal["all"], WrapValidator(_one_of_both)]
Options = dict[str, Any]

MOST_DRAWN = 10**9  # images of a task list, each as often as it is drawn; the paper's longest list has 5·10⁷


def require_once(name: str, values: Sequence[object]) -> None:
    """Raise BadInput where a list names something twice."""
    if len(set(values)) < len(values):
        raise BadInput(f"{name} are {list(values)}, expected each once")


def require_apart(kind: str, names: Iterable[str]) -> None:
    """Raise BadInput where two names differ in capitals alone: some file systems take them for one."""
    found: dict[str, str] = {}
    for name in names:
        other = found.setdefault(name.casefold(), name)
        if other != name:
            raise BadInput(f"{kind} {other} and {name} differ in capitals alone, expected names apart; rename one")


@with_config(STRICT)
@dataclass(frozen=True)
class Benchmark:
    """Which data and scale a run has; every caption names them. `remark` says what must not be concluded."""

    name: str
    scale: str
    remark: str


@with_config(STRICT)
@dataclass(frozen=True)
class Paper:
    """How the paper is rendered; `rows` are methods that the paper lacks, shown beside its own."""

    form: Literal["ours", "beside"]
    rows: tuple[Name, ...] = ()

    def __post_init__(self) -> None:
        require_once("rows", self.rows)


@with_config(STRICT)
@dataclass(frozen=True)
class Named:
    """A backbone or a classifier by name, with its options."""

    name: str
    options: Options = field(default_factory=dict)


@with_config(STRICT)
@dataclass(frozen=True)
class Classifier(Named):
    """A many-shot classifier; `backbone` are options that the backbone below it has besides its own."""

    backbone: Options = field(default_factory=dict)


@with_config(STRICT)
@dataclass(frozen=True)
class TaskList:
    """How many tasks to draw, and the ways of each."""

    way: Count
    tasks: Annotated[int, Field(ge=2, le=10**9)]  # an interval needs two


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class Episodes:
    """The stored tasks of a dataset, drawn for every shot.

    `calibration` validation tasks choose the seen bias; `seen` tasks are over the seen classes themselves.
    """

    shots: Annotated[tuple[Count, ...], Field(min_length=1)]
    query: Count
    test: Annotated[tuple[TaskList, ...], Field(min_length=1)]
    calibration: Count
    seen: Number

    def __post_init__(self) -> None:
        ways = [entry.way for entry in self.test]
        require_once("shots", self.shots)
        require_once("ways", ways)
        for entry in self.test:
            tasks = max(entry.tasks, self.calibration, self.seen)
            drawn = tasks * entry.way * (max(self.shots) + 2 * self.query)
            if drawn > MOST_DRAWN:
                message = f"{tasks} tasks of {entry.way} ways, {max(self.shots)} shots and {self.query} queries"
                raise BadInput(f"{message} draw {drawn} images, expected at most {MOST_DRAWN}; lower one of them")


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class DatasetParams:
    """Where a dataset comes from; `options` are the named arguments of its source.

    The rest says what differs from the values of all datasets: `episodes`, `backbone`, `pretraining` and `training`.
    """

    source: str
    size: Annotated[int, Field(ge=8, le=1024)]
    options: Options
    episodes: Options = field(default_factory=dict)
    backbone: Options = field(default_factory=dict)
    pretraining: Options = field(default_factory=dict)
    training: Options = field(default_factory=dict)


@with_config(STRICT)
@dataclass(frozen=True)
class Measuring:
    """How methods are measured on the stored tasks.

    Validation tasks of `selection` choose weights and options. Tasks of the ways in `few_shot` are measured among their
    own classes too; those in `detailed` get MAP and confidences, which cost most.
    """

    selection: TaskList
    few_shot: tuple[Way, ...]
    detailed: tuple[Way, ...]

    def __post_init__(self) -> None:
        require_once("few_shot", self.few_shot)
        require_once("detailed", self.detailed)


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class PretrainingParams(Pretraining):
    """How every backbone is pre-trained; the accuracy of nearest prototypes at `shot` shots chooses the epoch.

    `classifiers` are the many-shot ones by the role that methods ask for.
    """

    shot: Count
    classifiers: dict[Name, Classifier]


@with_config(STRICT)
@dataclass(frozen=True)
class Own:
    """Values that win over wider ones; those of the experiment leave the grid as it is."""

    options: Options = field(default_factory=dict)
    training: Options = field(default_factory=dict)


@with_config(STRICT)
@dataclass(frozen=True)
class MethodParams(Own):
    """What a method has instead of its defaults, and how many tasks it is measured on (0: all)."""

    limit: Number = 0

    def __post_init__(self) -> None:
        if self.limit == 1:
            raise BadInput("limit is 1, expected 0 for all tasks or at least 2: an interval needs two")


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class Params:
    """All of params.yaml. A seed stands for a whole replicate: data, tasks, initial weights and every batch."""

    seeds: Annotated[tuple[Number, ...], Field(min_length=1)]
    threads: Annotated[int, Field(ge=1, le=1024)]
    benchmark: Benchmark
    dataset: Name
    method: Name
    shot: Count
    way: Count
    own: Own = field(default_factory=Own)
    machine: Machine
    precision: Acceleration
    episodes: Episodes
    measuring: Measuring
    backbone: Named
    pretraining: PretrainingParams
    training: Options
    datasets: Annotated[dict[Name, DatasetParams], Field(min_length=1)]
    methods: dict[Name, MethodParams]
    paper: Paper

    def __post_init__(self) -> None:
        require_once("seeds", self.seeds)
        require_apart("datasets", self.datasets)
        require_apart("classifiers", self.pretraining.classifiers)


def read_params(file: Path) -> Params:
    """Read and check a parameter file; raises BadInput with everything that is wrong with it."""
    content = read_mapping(file, "the parameters of the pipeline, with keys such as seeds, datasets and methods")
    return checked(Params, content, str(file))
