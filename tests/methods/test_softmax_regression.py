"""The batched fit against a converged solver in double precision, and its derivatives against finite differences."""

import pytest
import torch
from torch import Tensor

from repro.data.seeding import generator
from repro.methods.shared.softmax_regression import fit_classifiers, own_class
from tests.methods.converged import by_scipy

DIM, TASKS = 24, 3


def problem(ways: int, shots: int, *, strength: float = 0.1, dim: int = DIM) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Non-negative features with a large common part, as a backbone with a last ReLU gives them."""
    random = generator(0, "problem", ways, shots)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    centres_TWKD = 1 + 0.6 * draw(TASKS, ways, 1, dim)
    support_TWKD = (centres_TWKD + 0.4 * draw(TASKS, ways, shots, dim)).relu()
    other_TN = 2 + draw(TASKS, ways * shots)
    return support_TWKD, other_TN, 0.1 * draw(TASKS, ways, dim), strength * draw(dim).exp() / ways


def own_chance(support_TWKD: Tensor, other_TN: Tensor, weights_TWD: Tensor) -> float:
    """The mean probability of the support's own classes."""
    logits_TNW = support_TWKD.flatten(1, 2) @ weights_TWD.mT
    chances = torch.cat([other_TN.unsqueeze(2), logits_TNW], dim=2).softmax(dim=2)[..., 1:]
    return float((chances * own_class(support_TWKD)).sum(dim=2).mean())


@pytest.mark.parametrize("shots", [1, 5])
@pytest.mark.parametrize("ways", [5, 20, 60])
def test_the_fit_is_the_optimum_at_any_number_of_ways_and_shots(ways: int, shots: int) -> None:
    given = problem(ways, shots)
    support_TWKD, other_TN, centre_TWD, strength_D = given
    tasks = zip(support_TWKD, other_TN, centre_TWD, strict=True)
    expected_TWD = torch.stack([by_scipy(*task, strength_D) for task in tasks])
    scale, chance = float(expected_TWD.abs().mean()), own_chance(support_TWKD, other_TN, expected_TWD)
    assert chance > 0.7  # a fit that stops early stays far below
    torch.testing.assert_close(fit_classifiers(*given), expected_TWD, rtol=0, atol=1e-3 * scale)
    single_TWD = fit_classifiers(*(tensor.float() for tensor in given)).double()
    torch.testing.assert_close(single_TWD, expected_TWD, rtol=0, atol=3e-3 * scale)
    assert own_chance(support_TWKD, other_TN, single_TWD) == pytest.approx(chance, abs=1e-4)


@pytest.mark.parametrize("strength", [1e-4, 1e-2, 10.0])
def test_the_fit_converges_however_weak_or_strong_the_pull_is(strength: float) -> None:
    given = problem(5, 1, strength=strength)
    support_TWKD, other_TN, centre_TWD, strength_D = given
    fitted_TWD = fit_classifiers(*given)
    images_TND = support_TWKD.flatten(1, 2)
    logits = torch.cat([other_TN.unsqueeze(2), images_TND @ fitted_TWD.mT], dim=2)
    surplus_TNW = logits.softmax(dim=2)[..., 1:] - own_class(support_TWKD)
    # Where the objective does not fall any further, the pull balances the cross-entropy.
    balance_TWD = centre_TWD - (surplus_TNW.mT @ images_TND / images_TND.shape[1]) / (2 * strength_D)
    torch.testing.assert_close(fitted_TWD, balance_TWD, rtol=0, atol=1e-2 * float(fitted_TWD.abs().mean()))


def test_without_other_classifiers_it_is_plain_multinomial_regression() -> None:
    support_TWKD, other_TN, centre_TWD, strength_D = problem(6, 2)
    nothing_TN, zero_TWD = torch.full_like(other_TN, -torch.inf), torch.zeros_like(centre_TWD)
    fitted_TWD = fit_classifiers(support_TWKD, nothing_TN, zero_TWD, strength_D)
    for task in range(TASKS):
        expected_WD = by_scipy(support_TWKD[task], torch.full((12,), -1e9).double(), zero_TWD[task], strength_D)
        torch.testing.assert_close(fitted_TWD[task], expected_WD, rtol=0, atol=1e-3)


def test_a_task_gives_the_same_bits_beside_any_other_tasks() -> None:
    support_TWKD, other_TN, centre_TWD, strength_D = (tensor.float() for tensor in problem(5, 1))
    hard_TWKD, hard_TN = torch.cat([support_TWKD[:1], 50 * support_TWKD[1:]]), other_TN.clone()
    easy = fit_classifiers(support_TWKD, other_TN, centre_TWD, strength_D)
    beside = fit_classifiers(hard_TWKD, hard_TN, centre_TWD, strength_D)
    assert torch.equal(easy[0], beside[0])
    assert not torch.equal(easy[1], beside[1])


@pytest.mark.parametrize("dim", [4, 12])
def test_derivatives_are_those_of_the_optimum(dim: int) -> None:
    """More images than features, and fewer."""
    given = problem(3, 2, dim=dim)
    for position, name in enumerate(("support", "other", "centre", "strength")):
        random = generator(1, name, dim)
        towards = torch.randn(given[position].shape, generator=random, dtype=torch.float64)
        weight_TWD = torch.randn(given[2].shape, generator=random, dtype=torch.float64)
        towards = towards * given[position].abs().mean()

        def value(amount: float, at: int = position, along: Tensor = towards, weight: Tensor = weight_TWD) -> float:
            moved = [one + amount * along if place == at else one for place, one in enumerate(given)]
            # The step of a derivative is a Newton step too, so it polishes the fit.
            moved[2] = moved[2].clone().requires_grad_()
            return float((weight * fit_classifiers(*moved)).sum().detach())

        inputs = [one.clone().requires_grad_() for one in given]
        (weight_TWD * fit_classifiers(*inputs)).sum().backward()
        assert inputs[position].grad is not None
        slope = (value(1e-3) - value(-1e-3)) / 2e-3
        assert float((inputs[position].grad * towards).sum()) == pytest.approx(slope, rel=1e-3, abs=1e-4), name
