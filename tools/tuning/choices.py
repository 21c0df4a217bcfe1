"""tools/tuning.yaml: what there is to choose from, the same number of settings for every method.

A benchmark with other ladders or settings has them under `benchmarks`, by its name in params.yaml.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, with_config

from repro.errors import BadInput
from repro.methods.registry import method_class
from repro.options import STRICT, checked
from stages.settings.machine import Count, Name
from stages.settings.params import MethodParams, Options, Own
from stages.settings.yaml_files import read_mapping

FILE = Path("tools") / "tuning.yaml"
Ladder = Annotated[tuple[Count, ...], Field(min_length=2)]


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The settings of one method; `options` are common to all of them."""

    settings: Annotated[tuple[Own, ...], Field(min_length=1)]
    options: Options = field(default_factory=dict)

    def complete(self) -> list[Own]:
        """Each with the common options."""
        return [Own({**self.options, **each.options}, each.training) for each in self.settings]


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class Choices:
    """Of one benchmark: where settings are compared, the ladders of budgets, and every method's settings.

    `pretraining` is the method that measures a pre-training; it trains nothing after it.
    """

    dataset: Name
    shot: Count
    pretraining: Name
    epochs: Ladder
    steps: Ladder
    validations: Count
    seeds: Count
    plateau: Annotated[float, Field(gt=0)]
    together: tuple[tuple[Name, ...], ...]
    methods: dict[Name, Candidates]

    def __post_init__(self) -> None:
        for name, ladder in (("epochs", self.epochs), ("steps", self.steps)):
            if any(after != 2 * before for before, after in zip(ladder, ladder[1:], strict=False)):
                raise BadInput(f"{name} are {list(ladder)}, expected each to be twice the last")
        if method_class(self.pretraining).default_training is not None:
            raise BadInput(f"pretraining is {self.pretraining}, expected a method that trains nothing after it")
        numbers = {name: len(each.settings) for name, each in self.methods.items()}
        if len(set(numbers.values())) > 1:
            raise BadInput(f"numbers of settings are {numbers}, expected the same for every method")
        known = [name for group in self.together for name in group]
        if len(set(known)) < len(known) or not set(known) <= set(self.methods):
            raise BadInput(f"together names {known}, expected each once, among {', '.join(self.methods)}")

    def entry(self, options: Options, training: Options, steps: int) -> MethodParams:
        """A setting, trained for `steps` steps, as an entry of `methods` in params.yaml."""
        budget = {"steps": steps, "validate_every": max(1, steps // self.validations)}
        return MethodParams(options, {**training, **budget})

    def groups(self, names: list[str]) -> list[tuple[str, ...]]:
        """These methods as they are chosen for: one of a group brings the whole of it. Raises BadInput."""
        if unknown := [name for name in names if name not in self.methods]:
            message = f"got method {unknown[0]!r}, expected some of {', '.join(self.methods)}"
            raise BadInput(f"{message}; add its settings to {FILE}")
        group_of = {name: group for group in self.together for name in group}
        return list(dict.fromkeys(group_of.get(name, (name,)) for name in names))


def read_choices(benchmark: str, file: Path = FILE) -> Choices:
    """Read and check what the file says for a benchmark; raises BadInput."""
    content = read_mapping(file, "settings to choose from, by method")
    own = checked(dict[str, dict[str, Any]], content.pop("benchmarks", {}), f"{file}: benchmarks")
    return checked(Choices, {**content, **own.get(benchmark, {})}, str(file))
