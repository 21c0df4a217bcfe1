"""MC + ProtoNet: both losses by loops, inference equal to MC + kNN's, training."""

import numpy as np
import pytest
import torch

from repro.data.seeding import generator
from repro.methods.mc_knn import MulticlassKNN
from repro.methods.mc_protonet import MulticlassProtoNet
from tests.methods.synthetic import ScaledIdentity, World, train


def make(world: World, **options) -> MulticlassProtoNet:
    return MulticlassProtoNet(ScaledIdentity(world.dim), world.dim, world.seen, **options)


def test_inference_is_that_of_mc_knn_whatever_the_temperature_of_the_loss():
    world = World.make()
    support, queries, _ = world.tasks()
    expected = world.ready(MulticlassKNN(ScaledIdentity(world.dim), world.dim, world.seen))
    for own, other in zip(
        world.ready(make(world, temperature=8.0)).joint_logits(support, queries),
        expected.joint_logits(support, queries),
        strict=True,
    ):
        torch.testing.assert_close(own, other)


def test_loss_adds_many_shot_cross_entropy_and_weighted_episode_loss():
    world = World.make()
    method = make(world, weight=0.7, way=3, queries=2, free=6)
    batch = world.batch(method.batch_spec(1), 0)
    weight = method.seen_weight_SD.detach().numpy()
    many_shot = []
    for x, label in zip(batch.free_BD.numpy(), batch.free_labels_B.numpy(), strict=True):
        many_shot.append(np.log(np.exp(weight @ x).sum()) - (weight @ x)[label])
    episode = []
    means = batch.support_TCKD[0].numpy().mean(axis=1)
    for position in range(3):
        for x in batch.query_TCQD[0, position].numpy():
            logits = -((x - means) ** 2).sum(-1)
            episode.append(np.log(np.exp(logits).sum()) - logits[position])
    expected = np.mean(many_shot) + 0.7 * np.mean(episode)
    assert float(method.loss(batch, generator(0)).detach()) == pytest.approx(expected, rel=1e-4)


def test_training_lowers_the_joint_objective():
    world = World.make(dim=12)
    before, after = train(make(world, temperature=4.0), world, shot=1, lr=0.01)
    assert after < 0.8 * before
