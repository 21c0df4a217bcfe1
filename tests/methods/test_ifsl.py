"""IFSL: the fit by loops with numerical gradients, the loss by loops, convergence, training."""

import numpy as np
import pytest
import torch

from repro.data.seeding import generator
from repro.methods.ifsl import AttentionAttractor
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


def cross_entropy(tail: np.ndarray, seen: np.ndarray, support: np.ndarray) -> float:
    joint = np.concatenate([seen, tail])
    labelled = [(x, len(seen) + way) for way, shots in enumerate(support) for x in shots]
    return float(np.mean([np.log(np.exp(joint @ x).sum()) - (joint @ x)[label] for x, label in labelled]))


def fitted(method: AttentionAttractor, support: np.ndarray, known: list[int]) -> np.ndarray:
    """The fit of one task, with the cross-entropy's gradient taken numerically."""
    ways, seen = len(support), method.seen_weight_SD.detach().numpy()[known]
    pull = attractors(method, support, known)
    strength = 2 * np.exp(method.log_strength_D.detach().numpy()) / ways
    rate = method.lr / (0.5 * (support**2).sum(-1).mean())
    tail = pull.copy()
    for _ in range(method.steps):
        gradient = np.zeros_like(tail)
        for position in np.ndindex(*tail.shape):
            nudge = np.zeros_like(tail)
            nudge[position] = 1e-6
            up, down = cross_entropy(tail + nudge, seen, support), cross_entropy(tail - nudge, seen, support)
            gradient[position] = (up - down) / 2e-6
        tail = (tail - rate * gradient + rate * strength * pull) / (1 + rate * strength)
    return tail


def test_scores_use_the_fitted_fast_weights():
    world = World.make()
    method = make(world, steps=3)
    support, queries, _ = (part.double() if part.is_floating_point() else part for part in world.tasks(tasks=2))
    seen, unseen = (scores.detach() for scores in method.joint_logits(support, queries))
    for task in range(2):
        tail = fitted(method, support[task].numpy(), list(range(world.seen)))
        np.testing.assert_allclose(unseen[task], queries[task].numpy() @ tail.T, atol=1e-5)
        np.testing.assert_allclose(seen[task], queries[task].numpy() @ method.seen_weight_SD.numpy().T, atol=1e-9)


def test_loss_fits_without_the_fake_unseen_classes_and_scores_all_queries_jointly():
    world = World.make()
    method = make(world, steps=2, way=3, queries=2, tasks=2, free=4)
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


def test_every_fit_step_lowers_the_task_objective():
    world = World.make()
    support = world.tasks(tasks=1)[0].double()
    seen = world.centres_CD[: world.seen].double().numpy() * 0.5
    values = []
    for steps in (0, 1, 2, 5, 20, 80):
        torch.manual_seed(0)
        method = make(world, steps=steps, lr=1.0)
        tail = method.fit(support)[0].detach().numpy()
        pull = method.attractors(support, None)[0].detach().numpy()
        distance = (0.1 * (tail - pull) ** 2).sum(axis=1).mean()
        values.append(cross_entropy(tail, seen, support[0].numpy()) + distance)
    assert all(later < earlier for earlier, later in zip(values, values[1:], strict=False))


def test_meta_training_lowers_the_loss_through_the_fit():
    world = World.make(dim=12)
    method = world.ready(AttentionAttractor(ScaledIdentity(12), 12, world.seen, steps=5))
    before, after = train(method, world, shot=1, steps=60, lr=0.1)
    assert after < 0.97 * before
    assert method.log_strength_D.grad is not None and method.attention_scale.grad is not None
