"""L2ML and L2ML+: few-shot classifiers against a converged solver, scores and loss by loops, training."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from repro.data.seeding import generator
from repro.methods.l2ml import L2ML
from repro.methods.l2ml_plus import L2MLPlus
from tests.methods.converged import by_scipy
from tests.methods.synthetic import ScaledIdentity, World, train


def fitted(support: np.ndarray, penalty: float = 1.0) -> np.ndarray:
    """Plain logistic regression of all classes of one task: summed cross-entropy + penalty/2 · ‖w‖²."""
    ways, shots, dim = support.shape
    images = torch.from_numpy(support).double()
    nobody_N, strength_D = torch.full((ways * shots,), -1e9).double(), torch.full((dim,), penalty / 2 / (ways * shots))
    return by_scipy(images, nobody_N, torch.zeros(ways, dim).double(), strength_D.double()).numpy()


def scaled_means(support: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Means of the classes of one task, as long as seen classifiers are."""
    means = support.mean(axis=1)
    return means / np.linalg.norm(means, axis=1, keepdims=True) * np.linalg.norm(weight, axis=1).mean()


@dataclass(frozen=True)
class Kind:
    """A method, how it finds the few-shot classifiers of a task, and the weight of its square loss."""

    method: type[Any]
    few_shot: Callable[[np.ndarray, np.ndarray], np.ndarray]
    square: float
    options: dict[str, float]


KINDS = {
    "L2ML": Kind(L2ML, lambda support, _: fitted(support), 1.0, {}),
    "L2ML+": Kind(L2MLPlus, scaled_means, 0.4, {"regression": 0.4}),
}


def make(world: World, kind: Kind, **options: float) -> Any:
    """The method with random last layers, so that its map is not the identity."""
    method = kind.method(ScaledIdentity(world.dim), world.dim, world.seen, **kind.options, **options)
    for block in method.map:
        torch.nn.init.normal_(block.linear2.weight, std=0.3, generator=generator(3))
    return method


def leaky(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, 0.01 * x)


def mapped(method: Any, w: np.ndarray) -> np.ndarray:
    """The residual map on one weight vector, with batch-norm at its initial running statistics."""
    squeeze = np.float32(1 / np.sqrt(1 + 1e-5))
    for block in method.map:
        one, two = block.linear1, block.linear2
        hidden = one.weight.detach().numpy() @ leaky(w * squeeze) + one.bias.detach().numpy()
        w = w + two.weight.detach().numpy() @ leaky(hidden * squeeze) + two.bias.detach().numpy()
    return w


def test_few_shot_classifiers_are_fitted_to_the_support_not_prototypes():
    world = World.make(seen=8, unseen=20, dim=16)
    for ways, shots, penalty in ((5, 1, 1.0), (5, 5, 0.1), (20, 1, 1.0)):
        support, _, _ = world.tasks(tasks=1, ways=ways, shots=shots)
        found = make(world, KINDS["L2ML"], penalty=penalty).few_shot(support)[0].numpy()
        expected = fitted(support[0].numpy(), penalty)
        np.testing.assert_allclose(found, expected, rtol=0, atol=3e-3 * np.abs(expected).mean())
        scores = support[0].flatten(0, 1).numpy() @ found.T
        assert (scores.argmax(axis=1) == np.repeat(np.arange(ways), shots)).mean() > 0.9


def test_the_map_of_l2ml_plus_starts_as_the_identity():
    world = World.make()
    method = world.ready(L2MLPlus(ScaledIdentity(world.dim), world.dim, world.seen))
    weights = torch.randn(4, world.dim)
    assert torch.equal(method.map(weights), weights)


@pytest.mark.parametrize("name", KINDS)
def test_scores_are_linear_in_the_pretrained_and_the_mapped_classifiers(name: str):
    world, kind = World.make(), KINDS[name]
    method = world.ready(make(world, kind))
    support, queries, _ = world.tasks()
    seen, unseen = (scores.detach() for scores in method.joint_logits(support, queries))
    weight = method.seen_weight_SD.numpy()
    for task in range(len(support)):
        tail = np.stack([mapped(method, w) for w in kind.few_shot(support[task].numpy(), weight)])
        for query in range(queries.shape[1]):
            x = queries[task, query].numpy()
            np.testing.assert_allclose(seen[task, query], weight @ x, rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(unseen[task, query], tail @ x, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", KINDS)
def test_loss_is_the_weighted_square_loss_plus_classification_with_the_mapped_classifiers(name: str):
    world, kind = World.make(), KINDS[name]
    method = world.ready(make(world, kind, free=9))
    batch = world.batch(method.batch_spec(2), 0)
    weight = method.seen_weight_SD.numpy()
    joint, square = weight.copy(), []
    few_shot = kind.few_shot(batch.support_TCKD[0].numpy(), weight)
    for label, w in zip(batch.labels_TC[0].numpy(), few_shot, strict=True):
        joint[label] = mapped(method, w)
        square.append(((joint[label] - weight[label]) ** 2).sum())
    losses = []
    for x, label in zip(batch.free_BD.numpy(), batch.free_labels_B.numpy(), strict=True):
        losses.append(np.log(np.exp(joint @ x).sum()) - (joint @ x)[label])
    expected = kind.square * np.mean(square) + np.mean(losses)
    assert float(method.loss(batch, generator(0)).detach()) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", KINDS)
def test_training_lowers_the_loss_and_moves_only_the_map(name: str):
    world = World.make(dim=12)
    method = KINDS[name].method(ScaledIdentity(world.dim), world.dim, world.seen)
    method.load_pretrained(world.centres_CD[: world.seen])
    pretrained = method.seen_weight_SD.clone()
    before, after = train(method, world, steps=60, lr=0.01)
    assert after < 0.9 * before
    assert torch.equal(method.seen_weight_SD, pretrained)
