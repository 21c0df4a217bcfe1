"""IFSL: the fit against a converged solver, the loss by loops, training."""

import numpy as np
import pytest
import torch

from repro.data.seeding import generator
from repro.methods.ifsl import AttentionAttractor
from tests.methods.converged import by_scipy
from tests.methods.synthetic import ScaledIdentity, World, train


def make(world: World, **options) -> AttentionAttractor:
    method = world.ready(AttentionAttractor(ScaledIdentity(world.dim), world.dim, world.seen, **options))
    return method.double()


def attractors(method: AttentionAttractor, support: np.ndarray, known: list[int]) -> np.ndarray:
    state = {name: value.detach().numpy() for name, value in method.named_parameters()}
    seen = state["seen_weight_SD"][known]
    hidden = np.tanh(seen @ state["bases.0.weight"].T + state["bases.0.bias"])
    bases = hidden @ state["bases.2.weight"].T + state["bases.2.bias"]
    rows = []
    for shots in support:
        mean = shots.mean(axis=0)
        cosines = seen @ mean / np.linalg.norm(seen, axis=1) / np.linalg.norm(mean)
        attention = np.exp(state["attention_scale"] * cosines)
        rows.append(attention / attention.sum() @ bases + state["offset_D"])
    return np.stack(rows)


def fitted(method: AttentionAttractor, support: np.ndarray, known: list[int]) -> np.ndarray:
    """The converged fit of one task."""
    seen = method.seen_weight_SD.detach().numpy()[known]
    other = np.log(np.exp(support.reshape(-1, support.shape[2]) @ seen.T).sum(axis=1))
    strength_D = method.log_strength_D.detach().exp() / len(support)
    pull_WD = torch.from_numpy(attractors(method, support, known))
    return by_scipy(torch.from_numpy(support), torch.from_numpy(other), pull_WD, strength_D).numpy()


def test_scores_use_the_fitted_fast_weights():
    world = World.make()
    method = make(world)
    support, queries, _ = (part.double() if part.is_floating_point() else part for part in world.tasks(tasks=2))
    seen, unseen = (scores.detach() for scores in method.joint_logits(support, queries))
    for task in range(2):
        tail = fitted(method, support[task].numpy(), list(range(world.seen)))
        np.testing.assert_allclose(unseen[task], queries[task].numpy() @ tail.T, atol=1e-5)
        np.testing.assert_allclose(seen[task], queries[task].numpy() @ method.seen_weight_SD.numpy().T, atol=1e-9)


def test_loss_fits_without_the_fake_unseen_classes_and_scores_all_queries_jointly():
    world = World.make()
    method = make(world, way=3, queries=2, tasks=2, free=4)
    batch = world.batch(method.batch_spec(1), 0)
    batch = type(batch)(
        batch.support_TCKD.double(), batch.query_TCQD.double(), batch.labels_TC, batch.free_BD.double(),
        batch.free_labels_B,
    )  # fmt: skip
    losses = []
    for task, labels in enumerate(batch.labels_TC.tolist()):
        known = [label for label in range(world.seen) if label not in labels]
        joint = method.seen_weight_SD.numpy().copy()
        joint[labels] = fitted(method, batch.support_TCKD[task].numpy(), known)
        queries = [(x, label) for label, xs in zip(labels, batch.query_TCQD[task].numpy(), strict=True) for x in xs]
        queries += list(zip(batch.free_BD.numpy(), batch.free_labels_B.tolist(), strict=True))
        losses += [np.log(np.exp(joint @ x).sum()) - (joint @ x)[label] for x, label in queries]
    assert float(method.loss(batch, generator(0)).detach()) == pytest.approx(np.mean(losses), rel=1e-5)


@pytest.mark.parametrize("shots", [1, 5])
@pytest.mark.parametrize("ways", [5, 20, 60])
def test_the_fit_converges_at_any_number_of_ways_and_shots(ways: int, shots: int) -> None:
    """Fast weights and the support's probability of its own classes, as a converged solver has them."""
    world = World.make(seen=8, unseen=ways, dim=24)
    torch.manual_seed(0)
    method = make(world)
    support = world.tasks(tasks=1, ways=ways, shots=shots)[0].double()
    expected = fitted(method, support[0].numpy(), list(range(world.seen)))
    fast = method.fit(support)[0].detach().numpy()
    np.testing.assert_allclose(fast, expected, rtol=0, atol=1e-3 * np.abs(expected).mean())
    images, own = support[0].flatten(0, 1).numpy(), np.repeat(np.arange(ways), shots)
    joint = images @ np.concatenate([fast, method.seen_weight_SD.numpy()]).T
    chances = np.exp(joint - joint.max(axis=1, keepdims=True))
    assert (chances[np.arange(len(own)), own] / chances.sum(axis=1)).mean() > 0.8


def test_meta_training_lowers_the_loss_through_the_fit():
    world = World.make(dim=12)
    method = world.ready(AttentionAttractor(ScaledIdentity(12), 12, world.seen))
    before, after = train(method, world, shot=1, steps=60, lr=0.1)
    assert after < 0.97 * before
    assert method.log_strength_D.grad is not None and method.attention_scale.grad is not None
