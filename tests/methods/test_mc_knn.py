"""MC + kNN against loops, and the paper's observation that it never predicts an unseen class."""

import numpy as np
import torch

from repro.methods.mc_knn import MulticlassKNN
from tests.methods.synthetic import ScaledIdentity, World


def test_scores_are_raw_seen_logits_beside_raw_negative_squared_distances():
    world = World.make()
    method = world.ready(MulticlassKNN(ScaledIdentity(world.dim), world.dim, world.seen))
    support, queries, _ = world.tasks()
    seen, unseen = method.joint_logits(support, queries)
    weight = method.seen_weight_SD.detach().numpy()
    for task in range(len(support)):
        for query in range(queries.shape[1]):
            x = queries[task, query].numpy()
            np.testing.assert_allclose(seen[task, query].detach(), [w @ x for w in weight], rtol=1e-4, atol=1e-4)
            negative = [-((x - shots.mean(0)) ** 2).sum() for shots in support[task].numpy()]
            np.testing.assert_allclose(unseen[task, query], negative, rtol=1e-3, atol=1e-4)


def test_without_calibration_no_query_is_given_to_an_unseen_class():
    world = World.make()
    method = world.ready(MulticlassKNN(ScaledIdentity(world.dim), world.dim, world.seen))
    support, queries, _ = world.tasks(tasks=50, queries=30)
    seen, unseen = method.joint_logits(support, queries)
    assert (seen.amax(-1) > unseen.amax(-1)).all()


def test_a_bias_on_the_seen_scores_separates_seen_from_unseen_queries():
    world = World.make(seen=8, unseen=3, dim=8)
    method = world.ready(MulticlassKNN(ScaledIdentity(world.dim), world.dim, world.seen))
    tail = torch.arange(8, 11)
    support = world.images(tail.view(1, 3, 1), 1)
    labels = torch.arange(11).repeat(40)
    seen, unseen = method.joint_logits(support, world.images(labels, 2).unsqueeze(0))
    gap = (seen.amax(-1) - unseen.amax(-1))[0]
    is_seen = labels < 8
    above = (gap[is_seen].unsqueeze(1) > gap[~is_seen]).float().mean()
    assert above > 0.6  # the chance that a seen query has the larger gap; 0.5 would be no information


def test_nothing_is_trained_after_pretraining():
    method = MulticlassKNN(ScaledIdentity(5), 5, 8)
    assert method.batch_spec(1) is None
    assert method.parameter_groups() == []
    assert not any(parameter.requires_grad for parameter in method.parameters())
