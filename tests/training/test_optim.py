"""Learning rates and optimiser groups."""

import pytest
import torch
from torch import nn

from repro.errors import BadInput
from repro.training.optim import SCHEDULES, Optimisation, Schedule


def test_the_paper_halves_every_2000_steps() -> None:
    factors = [Schedule("decay")(step, 10_000) for step in (1, 2000, 2001, 4000, 4001)]
    assert factors == [1, 1, 0.5, 0.5, 0.25]


def test_milestones_are_shares_of_the_run() -> None:
    factors = [Schedule("milestones", {"at": [0.5, 0.75], "factor": 0.1})(step, 8) for step in (1, 4, 5, 6, 7, 8)]
    assert factors == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01])


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_stays_between_0_and_1(name: str) -> None:
    factors = [Schedule(name)(step, 3000) for step in range(1, 3001)]
    assert all(0 < factor <= 1 for factor in factors)


def test_cosine_ends_near_zero_and_one_cycle_peaks_at_its_rise() -> None:
    assert Schedule("cosine")(1, 100) == 1
    assert Schedule("cosine")(100, 100) < 0.001
    cycle = [Schedule("one_cycle", {"rise": 0.25})(step, 100) for step in range(1, 101)]
    assert cycle.index(max(cycle)) == 25
    assert cycle[0] == pytest.approx(0.04)
    assert cycle[-1] < 0.001


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("linear", {}, "schedule 'linear' is unknown; expected one of constant, decay"),
        (
            "cosine",
            {"every": 3},
            "schedule cosine: unknown option every; remove it or correct its spelling; it takes no options",
        ),
        (
            "decay",
            {"gamma": 3},
            "schedule decay: unknown option gamma; remove it or correct its spelling; it takes every, factor",
        ),
    ],
)
def test_unknown_schedules_and_options_are_named(name: str, options: dict[str, int], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        Schedule(name, options)


def test_a_group_scales_its_own_learning_rate() -> None:
    model = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1)])
    groups = [
        {"name": str(scale), "params": list(part.parameters()), "lr_scale": scale}
        for part, scale in zip(model, (1.0, 10.0), strict=True)
    ]
    optimisation = Optimisation(0.2, Schedule("decay", {"every": 1}))
    optimiser = optimisation.optimiser(model, groups)
    assert optimisation.set_lr(optimiser, step=2, steps=5) == pytest.approx(0.1)
    assert [group["lr"] for group in optimiser.param_groups] == pytest.approx([0.1, 1.0])


def test_a_weight_in_no_group_or_in_two_is_named() -> None:
    model = nn.Linear(2, 2)
    group = {"name": "all", "params": [model.weight], "lr_scale": 1.0}
    with pytest.raises(BadInput, match="Linear: bias is in 0 optimiser groups, expected 1"):
        Optimisation(0.1).optimiser(model, [group])
    model.bias.requires_grad_(False)
    with pytest.raises(BadInput, match="weight is in 2 optimiser groups, expected 1"):
        Optimisation(0.1).optimiser(model, [group, group])
    empty = {"name": "none", "params": [], "lr_scale": 1.0}
    assert isinstance(Optimisation(0.1).optimiser(model, [group, empty]), torch.optim.SGD)


def test_a_learning_rate_of_zero_is_refused() -> None:
    with pytest.raises(BadInput, match="lr=0.*expected a positive lr"):
        Optimisation(0)
