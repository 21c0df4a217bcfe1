"""ProtoNet + ProtoNet: distances by loops, the episode loss by loops, memory, training."""

import numpy as np
import pytest
import torch

from repro.data.seeding import generator
from repro.errors import BadInput
from repro.methods.protonet import ProtoNet
from tests.methods.synthetic import ScaledIdentity, World, train


def make(world: World, **options) -> ProtoNet:
    return ProtoNet(ScaledIdentity(world.dim), world.dim, world.seen, **options)


def test_scores_are_negative_distances_to_remembered_and_support_means():
    world = World.make()
    method = world.ready(make(world, temperature=3.0))
    support, queries, _ = world.tasks()
    seen, unseen = method.joint_logits(support, queries)
    means = world.exemplars(100).numpy().mean(axis=1)
    for task in range(len(support)):
        for query in range(queries.shape[1]):
            x = queries[task, query].numpy()
            np.testing.assert_allclose(seen[task, query], -((x - means) ** 2).sum(-1) / 3, rtol=1e-4, atol=1e-4)
            tail = support[task].numpy().mean(axis=1)
            np.testing.assert_allclose(unseen[task, query], -((x - tail) ** 2).sum(-1) / 3, rtol=1e-4, atol=1e-4)


def test_loss_is_the_mean_cross_entropy_of_all_episodes():
    world = World.make()
    method = make(world, temperature=2.0, way=3, queries=4, tasks=2)
    batch = world.batch(method.batch_spec(2), 0)
    losses = []
    for task in range(2):
        means = batch.support_TCKD[task].numpy().mean(axis=1)
        for position in range(3):
            for x in batch.query_TCQD[task, position].numpy():
                logits = -((x - means) ** 2).sum(-1) / 2
                losses.append(np.log(np.exp(logits).sum()) - logits[position])
    assert float(method.loss(batch, generator(0))) == pytest.approx(np.mean(losses), rel=1e-4)


def test_remembered_prototypes_are_saved_with_the_model():
    world = World.make()
    method, other = world.ready(make(world)), make(world)
    other.load_state_dict(method.state_dict())
    support, queries, _ = world.tasks()
    assert torch.equal(method.joint_logits(support, queries)[0], other.joint_logits(support, queries)[0])


def test_joint_prediction_before_remembering_is_refused():
    world = World.make()
    with pytest.raises(BadInput, match="remember"):
        make(world).joint_logits(*world.tasks()[:2])


def test_episodes_lower_the_loss():
    world = World.make(dim=12, noise=2.0)
    before, after = train(make(world, tasks=4), world, shot=1, lr=0.01)
    assert after < 0.9 * before
