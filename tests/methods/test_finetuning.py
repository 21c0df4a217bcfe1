"""The batched fine-tuning loop against autograd on one task at a time."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from repro.data.seeding import generator
from repro.errors import BadInput
from repro.methods.shared import finetuning
from repro.methods.shared.finetuning import Distillation, ExemplarStore, Tuned, finetune

SEEN, WAYS, SHOTS, STORED, DIM, TASKS = 6, 3, 2, 4, 5, 7


def draw(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


@pytest.fixture
def problem() -> dict[str, Tensor]:
    old = draw(SEEN, DIM, seed=1)
    return {
        "weights_TCD": torch.cat([old.expand(TASKS, -1, -1), draw(TASKS, WAYS, DIM, seed=2)], dim=1),
        "stored_SMD": old.unsqueeze(1) + draw(SEEN, STORED, DIM, seed=3),
        "support_TWKD": draw(TASKS, WAYS, SHOTS, DIM, seed=4),
    }


def tuned_by_autograd(
    weights: Tensor, stored: Tensor, support: Tensor, distillation: Distillation | None, *, steps: int, lr: float
) -> Tuned:
    """One task, literally: the model, the loss, autograd, gradient descent."""
    images = torch.cat([stored.flatten(0, 1), support.flatten(0, 1)])
    labels = torch.cat(
        [torch.arange(SEEN).repeat_interleave(STORED), SEEN + torch.arange(WAYS).repeat_interleave(SHOTS)]
    )
    share = distillation.weight if distillation else 0.0
    rate = lr / (0.5 * (stored**2).sum(-1).mean() * (1 + share))
    parameters = [weights.clone(), torch.zeros(DIM, dtype=weights.dtype), torch.zeros(DIM, dtype=weights.dtype)]
    for _ in range(steps):
        w, scale, bias = (parameter.detach().requires_grad_() for parameter in parameters)
        logits = ((1 + scale) * images + bias) @ w.T
        loss = cross_entropy(logits, labels)
        if distillation:
            heat = distillation.temperature
            old = (images @ distillation.old_SD.T / heat).softmax(-1)
            new = (logits[:, :SEEN] / heat).log_softmax(-1)
            loss = loss + distillation.weight * heat**2 * (old * (old.log() - new)).sum(-1).mean()
        gradients = torch.autograd.grad(loss, [w, scale, bias])
        parameters = [p - rate * g for p, g in zip((w, scale, bias), gradients, strict=True)]
    w, scale, bias = (parameter.detach() for parameter in parameters)
    return Tuned(w[None], scale[None], bias[None])


@pytest.mark.parametrize("distils", [False, True])
def test_equals_autograd_task_by_task(problem, distils, monkeypatch):
    monkeypatch.setattr(finetuning, "TASKS_AT_ONCE", 3)  # 7 tasks: two whole parts and a remainder
    distillation = Distillation(problem["weights_TCD"][0, :SEEN], 0.7, 2.0) if distils else None
    tuned = finetune(**problem, steps=4, lr=2.0, distillation=distillation)
    for task in range(TASKS):
        weights, support = problem["weights_TCD"][task], problem["support_TWKD"][task]
        expected = tuned_by_autograd(weights, problem["stored_SMD"], support, distillation, steps=4, lr=2.0)
        torch.testing.assert_close(tuned.weights_TCD[task], expected.weights_TCD[0])
        torch.testing.assert_close(tuned.scale_TD[task], expected.scale_TD[0])
        torch.testing.assert_close(tuned.bias_TD[task], expected.bias_TD[0])


def test_leaves_the_starting_classifiers_untouched(problem):
    before = problem["weights_TCD"].clone()
    finetune(**problem, steps=2, lr=1.0)
    assert torch.equal(problem["weights_TCD"], before)


def test_no_step_means_the_starting_classifier(problem):
    tuned = finetune(**problem, steps=0, lr=1.0)
    queries = draw(TASKS, 4, DIM, seed=9)
    torch.testing.assert_close(tuned.logits(queries), queries @ problem["weights_TCD"].transpose(1, 2))


def test_a_store_refuses_the_wrong_number_of_images_and_reading_before_filling():
    store = ExemplarStore(SEEN, STORED, DIM)
    with pytest.raises(BadInput, match="remember"):
        store.exemplars()
    with pytest.raises(BadInput, match=r"expected \(6, 4, 5\)"):
        store.fill(torch.ones(SEEN, STORED + 1, DIM))
