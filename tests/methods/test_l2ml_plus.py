"""L2ML+: scores and loss by loops, the map's identity start, training."""

import numpy as np
import pytest
import torch

from repro.data.seeding import generator
from repro.methods.l2ml_plus import L2MLPlus
from tests.methods.synthetic import ScaledIdentity, World, train


def make(world: World, **options) -> L2MLPlus:
    return L2MLPlus(ScaledIdentity(world.dim), world.dim, world.seen, **options)


def few_shot(shots: np.ndarray, weight: np.ndarray) -> np.ndarray:
    mean = shots.mean(axis=0)
    return mean / np.linalg.norm(mean) * np.linalg.norm(weight, axis=1).mean()


def leaky(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, 0.01 * x)


def mapped(method: L2MLPlus, w: np.ndarray) -> np.ndarray:
    """The residual map on one weight vector, with batch-norm at its initial running statistics."""
    squeeze = np.float32(1 / np.sqrt(1 + 1e-5))
    for block in method.map:
        one, two = block.linear1, block.linear2
        hidden = one.weight.detach().numpy() @ leaky(w * squeeze) + one.bias.detach().numpy()
        w = w + two.weight.detach().numpy() @ leaky(hidden * squeeze) + two.bias.detach().numpy()
    return w


def stirred(method: L2MLPlus) -> L2MLPlus:
    """Random last layers, so that the map is not the identity."""
    for block in method.map:
        torch.nn.init.normal_(block.linear2.weight, std=0.3, generator=generator(3))
    return method


def test_the_map_starts_as_the_identity():
    world = World.make()
    method = world.ready(make(world))
    weights = torch.randn(4, world.dim)
    assert torch.equal(method.map(weights), weights)


def test_scores_are_linear_in_the_pretrained_and_the_mapped_classifiers():
    world = World.make()
    method = stirred(world.ready(make(world)))
    support, queries, _ = world.tasks()
    seen, unseen = (scores.detach() for scores in method.joint_logits(support, queries))
    weight = method.seen_weight_SD.numpy()
    for task in range(len(support)):
        tail = np.stack([mapped(method, few_shot(shots, weight)) for shots in support[task].numpy()])
        for query in range(queries.shape[1]):
            x = queries[task, query].numpy()
            np.testing.assert_allclose(seen[task, query], weight @ x, rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(unseen[task, query], tail @ x, rtol=1e-3, atol=1e-3)


def test_loss_is_regression_plus_classification_with_the_mapped_classifiers():
    world = World.make()
    method = stirred(world.ready(make(world, regression=0.4, free=9)))
    batch = world.batch(method.batch_spec(2), 0)
    weight = method.seen_weight_SD.numpy()
    joint, square = weight.copy(), []
    for label, shots in zip(batch.labels_TC[0].numpy(), batch.support_TCKD[0].numpy(), strict=True):
        joint[label] = mapped(method, few_shot(shots, weight))
        square.append(((joint[label] - weight[label]) ** 2).sum())
    losses = []
    for x, label in zip(batch.free_BD.numpy(), batch.free_labels_B.numpy(), strict=True):
        losses.append(np.log(np.exp(joint @ x).sum()) - (joint @ x)[label])
    expected = 0.4 * np.mean(square) + np.mean(losses)
    assert float(method.loss(batch, generator(0)).detach()) == pytest.approx(expected, rel=1e-3)


def test_training_lowers_the_loss_and_moves_only_the_map():
    world = World.make(dim=12)
    method = make(world)
    method.load_pretrained(world.centres_CD[: world.seen])
    pretrained = method.seen_weight_SD.clone()
    before, after = train(method, world, steps=60, lr=0.01)
    assert after < 0.9 * before
    assert torch.equal(method.seen_weight_SD, pretrained)
