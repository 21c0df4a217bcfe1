"""A stage's command line: the name of its line in paper/grid.yaml, then what that line says, as dvc.yaml writes it out.

    python -m stages evaluate mini-castle-1shot --dataset mini --method castle --shot 1 --ways 5 all --options.ratio 3.0

A dot leads into a mapping, several values make a list where one is expected, a flag alone is true.
"""

from collections.abc import Collection
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError

from repro.errors import BadInput
from repro.options import sentence
from stages._params import Name, Options, Params, Strict, Way, plain_yaml, unknown, unstored

Line = TypeVar("Line", bound=Strict)
EXPECTED = "a name, then --key value … as dvc.yaml writes them"


class PretrainingLine(Strict):
    """A backbone to pre-train with one of the classifiers, or to leave at its initial weights."""

    dataset: Name
    classifier: Name
    random: bool = False


class TrainingLine(Strict):
    """A method to train on a pre-trained backbone."""

    dataset: Name
    method: Name
    shot: int
    pretrained: Name
    options: Options = {}


class EvaluationLine(Strict):
    """A method to measure; `model` is the folder of what it builds on."""

    dataset: Name
    method: Name
    shot: int
    model: str
    ways: Annotated[list[Way], Field(min_length=1)]
    seen: bool = False
    options: Options = {}


def the_name(arguments: list[str], kind: str, known: Collection[str]) -> str:
    """The only argument; raises BadInput where it is missing or leads nowhere in params.yaml."""
    given = arguments[1:]
    if len(given) != 1 or given[0] not in known:
        raise BadInput(f"got {' '.join(given) or 'no name'}, expected one {kind} of params.yaml: {', '.join(known)}")
    return given[0]


def line_of(kind: type[Line], arguments: list[str], params: Params) -> tuple[str, Line]:
    """The name and the line on a command line; raises BadInput for keys and names that lead nowhere."""
    if len(arguments) < 2 or arguments[1].startswith("--"):
        raise BadInput(f"got {' '.join(arguments[1:]) or 'no name'}, expected {EXPECTED}")
    try:
        line = kind.model_validate(_read(arguments[2:], lists={"ways"}))
    except ValidationError as error:
        raise BadInput(f"{arguments[1]}: {'; '.join(map(sentence, error.errors()))}") from error
    problems = _unknown_names(line.model_dump(), params)
    if problems:
        raise BadInput(f"{arguments[1]}: {'; '.join(problems)}")
    return arguments[1], line


def _unknown_names(line: dict[str, Any], params: Params) -> list[str]:
    problems = unknown("dataset", line["dataset"], params.datasets)
    if "method" in line:
        problems += unknown("method", line["method"], params.methods)
    if "classifier" in line:
        problems += unknown("classifier", line["classifier"], params.pretraining.classifiers)
    if "shot" in line and not problems:
        problems += unstored(params.episodes[line["dataset"]], line["dataset"], line["shot"])
    return problems


def _read(arguments: list[str], lists: set[str]) -> dict[str, Any]:
    """Flags with their values as a nested mapping."""
    values: dict[str, list[Any]] = {}
    for argument in arguments:
        if argument[2:] in values and argument.startswith("--"):
            raise BadInput(f"{argument} is given twice, expected {EXPECTED}")
        if argument.startswith("--"):
            values[argument[2:]] = []
        elif values:  # a number, a truth value or a word, as in params.yaml
            values[next(reversed(values))].append(plain_yaml(argument, f"the argument {argument!r}"))
        else:
            raise BadInput(f"got {argument!r} before any --key, expected {EXPECTED}")
    read: dict[str, Any] = {}
    for key, given in values.items():
        *outer, last = key.split(".")
        inner = read
        for part in outer:
            inner = inner.setdefault(part, {})
            if not isinstance(inner, dict):
                raise BadInput(f"--{key} leads into {inner!r}, expected {EXPECTED}")
        inner[last] = given if last in lists or len(given) > 1 else (given or [True])[0]
    return read
