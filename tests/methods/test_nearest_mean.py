"""The floor row: cosines with class means, by loops."""

import numpy as np
import pytest
import torch

from repro.errors import BadInput
from repro.methods.nearest_mean import NearestMean
from tests.methods.synthetic import ScaledIdentity, World


def cosine(x: np.ndarray, y: np.ndarray) -> float:
    return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))


def test_scores_are_cosines_with_the_means_of_remembered_and_support_images():
    world = World.make()
    method = world.ready(NearestMean(ScaledIdentity(world.dim), world.dim, world.seen))
    support, queries, _ = world.tasks()
    joint = torch.cat(method.joint_logits(support, queries), dim=2)
    remembered = world.exemplars(100).numpy().mean(axis=1)
    for task in range(len(support)):
        means = [*remembered, *support[task].numpy().mean(axis=1)]
        for query in range(queries.shape[1]):
            expected = [cosine(queries[task, query].numpy(), mean) for mean in means]
            np.testing.assert_allclose(joint[task, query], expected, rtol=1e-4, atol=1e-5)


def test_nothing_is_trained():
    method = NearestMean(ScaledIdentity(5), 5, 8)
    assert method.batch_spec(1) is None
    assert not any(parameter.requires_grad for parameter in method.parameters())


def test_scores_before_anything_was_remembered_are_refused():
    with pytest.raises(BadInput, match="remember"):
        NearestMean(ScaledIdentity(5), 5, 8).fixed_seen_logits(torch.ones(1, 5))
