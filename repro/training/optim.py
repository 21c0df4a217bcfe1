"""Momentum SGD, and learning-rate schedules that are functions of the step alone."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import torch
from pydantic import with_config
from torch import nn

from repro.errors import BadInput
from repro.options import STRICT, check_options


def constant(step: int, steps: int) -> float:
    """No decay."""
    return 1.0


def decay(step: int, steps: int, every: int = 2000, factor: float = 0.5) -> float:
    """Multiply by `factor` after every `every` steps. Paper: halved every 2,000; released code: every 10 batches."""
    return factor ** ((step - 1) // every)


def milestones(step: int, steps: int, at: tuple[float, ...] = (0.5, 0.75), factor: float = 0.1) -> float:
    """Multiply by `factor` when these shares of the run are done."""
    return factor ** sum(step - 1 >= share * steps for share in at)


def cosine(step: int, steps: int) -> float:
    """Half a cosine from 1 down to 0."""
    return 0.5 * (1 + math.cos(math.pi * (step - 1) / steps))


def one_cycle(step: int, steps: int, rise: float = 0.3, start: float = 0.04) -> float:
    """Half a cosine up from `start` during the `rise` share of the run, then another down to 0."""
    done = (step - 1) / steps
    if done < rise:
        return start + (1 - start) * 0.5 * (1 - math.cos(math.pi * done / rise))
    return 0.5 * (1 + math.cos(math.pi * (done - rise) / (1 - rise)))


SCHEDULES: dict[str, Callable[..., float]] = {
    each.__name__: each for each in (constant, decay, milestones, cosine, one_cycle)
}


@with_config(STRICT)
@dataclass(frozen=True)
class Schedule:
    """A learning-rate schedule by name: the factor on the rate at a step (from 1) of a run of so many steps."""

    name: str = "constant"
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in SCHEDULES:
            raise BadInput(f"schedule {self.name!r} is unknown; expected one of {', '.join(SCHEDULES)}")
        check_options(f"schedule {self.name}", self.options, SCHEDULES[self.name], given=("step", "steps"))
        if self.options.get("every", 1) < 1:
            raise BadInput(f"schedule {self.name}: every is {self.options['every']}, expected at least 1 step")

    def __call__(self, step: int, steps: int) -> float:
        return SCHEDULES[self.name](step, steps, **self.options)


@with_config(STRICT)
@dataclass(frozen=True)
class Optimisation:
    """Stochastic gradient descent with momentum. `clip` bounds the norm of the whole gradient (0: no bound)."""

    lr: float
    schedule: Schedule = Schedule()
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

    def own_values(self) -> dict[str, Any]:
        """Its own settings as plain values, without those that a subclass adds."""
        values = asdict(self)
        return {each.name: values[each.name] for each in fields(Optimisation)}

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
