"""TEEN: calibrated means by loops, and what its two numbers do."""

import numpy as np
import pytest
import torch

from repro.errors import BadInput
from repro.methods.nearest_mean import NearestMean
from repro.methods.teen import TEEN
from tests.methods.synthetic import ScaledIdentity, World


def make(world: World, **options) -> TEEN:
    return world.ready(TEEN(ScaledIdentity(world.dim), world.dim, world.seen, **options))


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def test_scores_are_cosines_with_seen_means_and_calibrated_unseen_means():
    world = World.make()
    support, queries, _ = world.tasks()
    joint = torch.cat(make(world).joint_logits(support, queries), dim=2)
    seen = world.exemplars(100).numpy().mean(axis=1)
    for task in range(len(support)):
        means = list(seen)
        for shots in support[task].numpy():
            own = shots.mean(axis=0)
            weights = np.exp(16 * unit(seen) @ unit(own))
            means.append(0.5 * own + 0.5 * (weights / weights.sum()) @ seen)
        expected = unit(queries[task].numpy()) @ unit(np.stack(means)).T
        np.testing.assert_allclose(joint[task], expected, rtol=1e-3, atol=1e-4)


def test_without_a_share_of_the_seen_means_it_is_the_nearest_mean():
    world = World.make()
    support, queries, _ = world.tasks()
    plain = world.ready(NearestMean(ScaledIdentity(world.dim), world.dim, world.seen))
    for own, other in zip(
        make(world, alpha=0.0).joint_logits(support, queries), plain.joint_logits(support, queries), strict=True
    ):
        torch.testing.assert_close(own, other)


def test_a_sharp_softmax_moves_a_mean_towards_the_seen_mean_nearest_in_angle():
    world = World.make()
    method = make(world, tau=1e4)
    support, _, _ = world.tasks()
    seen_SD = method.seen_prototypes_SD
    means_TWD = support.mean(dim=2)
    nearest_TW = torch.cosine_similarity(means_TWD.unsqueeze(2), seen_SD, dim=-1).argmax(dim=-1)
    torch.testing.assert_close(method.calibrated(support), (means_TWD + seen_SD[nearest_TW]) / 2)


def test_a_share_above_one_is_refused():
    with pytest.raises(BadInput, match="alpha is 1.5; expected a share between 0 and 1"):
        TEEN(ScaledIdentity(5), 5, 8, alpha=1.5)
