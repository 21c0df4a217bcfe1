"""Momentum SGD, and learning-rate schedules that are functions of the step alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import nn

from repro.errors import BadInput
from repro.options import check_options


class Schedule(Protocol):
    """The factor on the learning rate at a step (from 1) of a run of so many steps."""

    def __call__(self, step: int, steps: int) -> float: ...


@dataclass(frozen=True)
class Constant:
    """No decay."""

    def __call__(self, step: int, steps: int) -> float:
        return 1.0


@dataclass(frozen=True)
class Decay:
    """Multiply by `factor` after every `every` steps. Paper: halved every 2,000; released code: every 10 batches."""

    every: int = 2000
    factor: float = 0.5

    def __post_init__(self) -> None:
        if self.every < 1:
            raise BadInput(f"schedule decay: every is {self.every}, expected at least 1 step")

    def __call__(self, step: int, steps: int) -> float:
        return self.factor ** ((step - 1) // self.every)


@dataclass(frozen=True)
class Milestones:
    """Multiply by `factor` when these shares of the run are done."""

    at: tuple[float, ...] = (0.5, 0.75)
    factor: float = 0.1

    def __call__(self, step: int, steps: int) -> float:
        return self.factor ** sum(step - 1 >= share * steps for share in self.at)


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from 1 down to 0."""

    def __call__(self, step: int, steps: int) -> float:
        return 0.5 * (1 + math.cos(math.pi * (step - 1) / steps))


@dataclass(frozen=True)
class OneCycle:
    """Half a cosine up from `start` during the `rise` share of the run, then another down to 0."""

    rise: float = 0.3
    start: float = 0.04

    def __call__(self, step: int, steps: int) -> float:
        done = (step - 1) / steps
        if done < self.rise:
            return self.start + (1 - self.start) * 0.5 * (1 - math.cos(math.pi * done / self.rise))
        return 0.5 * (1 + math.cos(math.pi * (done - self.rise) / (1 - self.rise)))


SCHEDULES: dict[str, type[Schedule]] = {
    "constant": Constant,
    "decay": Decay,
    "milestones": Milestones,
    "cosine": Cosine,
    "one_cycle": OneCycle,
}


def schedule_from(name: str, **options: Any) -> Schedule:
    """The named schedule, for instance `schedule_from("decay", every=2000, factor=0.5)`."""
    if name not in SCHEDULES:
        raise BadInput(f"schedule {name!r} is unknown; expected one of {', '.join(SCHEDULES)}")
    check_options(f"schedule {name}", options, SCHEDULES[name])
    return SCHEDULES[name](**options)


@dataclass(frozen=True)
class Optimisation:
    """Stochastic gradient descent with momentum. `clip` bounds the norm of the whole gradient (0: no bound)."""

    lr: float
    schedule: Schedule = Constant()
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 0.0
    clip: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.lr < math.inf or min(self.momentum, self.weight_decay, self.clip) < 0:
            raise BadInput(
                f"lr={self.lr}, momentum={self.momentum}, weight_decay={self.weight_decay}, clip={self.clip}: "
                "expected a positive lr and nothing below 0"
            )

    def optimiser(self, model: nn.Module, groups: Sequence[Mapping[str, Any]]) -> torch.optim.SGD:
        """SGD over a model's groups, each with `name`, `params` and `lr_scale`; every trainable weight in one."""
        require_each_once(model, groups)
        return torch.optim.SGD(
            [dict(group) for group in groups if group["params"]],
            lr=self.lr,
            momentum=self.momentum,
            nesterov=self.nesterov,
            weight_decay=self.weight_decay,
        )

    def set_lr(self, optimiser: torch.optim.Optimizer, step: int, steps: int) -> float:
        """Give every group its learning rate of this step (from 1); the unscaled one comes back."""
        lr = self.lr * self.schedule(step, steps)
        for group in optimiser.param_groups:
            group["lr"] = lr * group["lr_scale"]
        return lr


def require_each_once(model: nn.Module, groups: Sequence[Mapping[str, Any]]) -> None:
    """Raise BadInput, naming the weight, unless every trainable weight of the model is in exactly one group."""
    grouped = [id(parameter) for group in groups for parameter in group["params"]]
    for name, parameter in model.named_parameters():
        times = grouped.count(id(parameter))
        if times != int(parameter.requires_grad):
            raise BadInput(
                f"{type(model).__name__}: {name} is in {times} optimiser groups, expected "
                f"{int(parameter.requires_grad)}; correct its parameter_groups"
            )
