"""paper/tuning.json: the settings and budgets that validation tasks chose, with every number that chose them.

By the name of the benchmark, since every benchmark has its own.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal

from pydantic import Field, with_config

from repro.errors import BadInput
from repro.files import whole_file
from repro.options import STRICT, checked

Rule = Literal["hm", "cal_hm"]


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class TrialOutcome:
    """Means over validation tasks in percent, of the weights of the step with the best HM."""

    hm: float
    cal_hm: float
    ausuc: float
    best_step: int = 0
    diverged: bool = False


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class Tried:
    """One setting of a method: `options` and `training` as in params.yaml, without the budget."""

    options: dict[str, Any]
    training: dict[str, Any]
    outcome: TrialOutcome


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class ChosenSetting:
    """The settings of a method, compared after `steps` steps by `by`, and the number of the one that was chosen.

    `together` names the methods whose mean decided.
    """

    dataset: str
    shot: int
    seed: int
    steps: int
    by: Rule
    together: tuple[str, ...]
    tried: tuple[Tried, ...]
    chosen: int

    def __post_init__(self) -> None:
        if not 0 <= self.chosen < len(self.tried):
            raise BadInput(f"chosen is {self.chosen}, expected the number of one of {len(self.tried)} that were tried")

    @property
    def setting(self) -> Tried:
        """The one that was chosen."""
        return self.tried[self.chosen]


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class Rung:
    """A budget (steps of a training, epochs of a pre-training), with an outcome for each seed."""

    steps: int
    outcomes: Annotated[tuple[TrialOutcome, ...], Field(min_length=1)]

    @property
    def ausuc(self) -> float:
        """The mean over seeds."""
        return fmean(each.ausuc for each in self.outcomes)


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class Climb:
    """Budgets that were tried, each twice the last, and the one that was chosen.

    `plateau` is what twice its steps may gain at most, in points of AUSUC.
    """

    plateau: float
    seeds: tuple[int, ...]
    rungs: Annotated[tuple[Rung, ...], Field(min_length=2)]

    @property
    def gain(self) -> float:
        """What the last doubling gained."""
        return self.rungs[-1].ausuc - self.rungs[-2].ausuc

    @property
    def reached(self) -> bool:
        """Whether the last doubling gained less than the plateau allows."""
        return self.gain < self.plateau

    @property
    def steps(self) -> int:
        """The budget: what was not worth doubling, or the largest that was tried."""
        return self.rungs[-2].steps if self.reached else self.rungs[-1].steps


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class Budget(Climb):
    """Of a method at one dataset and shot."""

    dataset: str
    method: str
    shot: int
    options: dict[str, Any]
    training: dict[str, Any]


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class PretrainingBudget(Climb):
    """Of a dataset's pre-training, in epochs, as `method` measures it, which trains nothing after it."""

    dataset: str
    method: str


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Of one benchmark: budgets of pre-training, settings by method, and their budgets.

    `amp` is the number format that the trainings behind all of them computed in.
    """

    amp: str = "none"
    pretraining: tuple[PretrainingBudget, ...] = ()
    settings: dict[str, ChosenSetting] = field(default_factory=dict)
    budgets: tuple[Budget, ...] = ()

    def with_pretraining(self, budget: PretrainingBudget) -> "Tuning":
        """The same with this one in place of the dataset's older one."""
        others = [one for one in self.pretraining if one.dataset != budget.dataset]
        return replace(self, pretraining=tuple(sorted([*others, budget], key=lambda one: one.dataset)))

    def with_chosen(self, settings: dict[str, ChosenSetting], budgets: Sequence[Budget]) -> "Tuning":
        """The same with these in place of older ones; budgets of a setting that is no longer chosen go."""
        chosen = {**self.settings, **settings}
        new = {(one.dataset, one.method, one.shot): one for one in (*self.budgets, *budgets)}
        kept = [one for one in new.values() if _is_of(one, chosen.get(one.method))]
        return replace(
            self,
            settings=dict(sorted(chosen.items())),
            budgets=tuple(sorted(kept, key=lambda one: (one.dataset, one.method, one.shot))),
        )


NOTHING_TUNED = Tuning()


def _is_of(budget: Budget, chosen: ChosenSetting | None) -> bool:
    return chosen is not None and (budget.options, budget.training) == (chosen.setting.options, chosen.setting.training)


@with_config(STRICT)
@dataclass(frozen=True)
class Tunings:
    """All of the file."""

    benchmarks: dict[str, Tuning] = field(default_factory=dict)

    def of(self, benchmark: str) -> Tuning:
        """What was chosen for a benchmark; nothing yet where it is not there."""
        return self.benchmarks.get(benchmark, NOTHING_TUNED)

    def with_tuning(self, benchmark: str, tuning: Tuning) -> "Tunings":
        """The same with this in place of what was chosen for the benchmark before."""
        return Tunings(dict(sorted({**self.benchmarks, benchmark: tuning}.items())))


def read_tunings(file: Path) -> Tunings:
    """Read the file; nothing was chosen yet where there is none. Raises BadInput for one that is not what it should."""
    if not file.is_file():
        return Tunings()
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{file}: is no JSON ({error}); run tools/tune to write it anew") from error
    return checked(Tunings, content, str(file))


def write_tunings(file: Path, tunings: Tunings) -> None:
    """Write the file whole."""
    with whole_file(file) as partial:
        partial.write_text(json.dumps(asdict(tunings), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
