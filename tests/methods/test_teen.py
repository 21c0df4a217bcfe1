"""TEEN: calibrated means by loops, and what its two numbers do."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

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
    seen = unit(world.exemplars(100).numpy().mean(axis=1))
    for task in range(len(support)):
        means = list(seen)
        for shots in support[task].numpy():
            own = unit(shots.mean(axis=0))
            weights = np.exp(16 * seen @ own)
            means.append(0.5 * own + 0.5 * unit(weights @ seen))
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
    seen_SD = normalize(method.seen_prototypes_SD, dim=-1)
    means_TWD = normalize(support.mean(dim=2), dim=-1)
    nearest_TW = (means_TWD @ seen_SD.T).argmax(dim=-1)
    torch.testing.assert_close(method.calibrated(support), (means_TWD + seen_SD[nearest_TW]) / 2)


def test_lengths_of_the_embeddings_do_not_matter():
    world = World.make()
    support, queries, _ = world.tasks()
    torch.testing.assert_close(make(world).calibrated(3 * support), make(world).calibrated(support))


def test_a_share_above_one_is_refused():
    with pytest.raises(BadInput, match="alpha is 1.5; expected a share between 0 and 1"):
        TEEN(ScaledIdentity(5), 5, 8, alpha=1.5)
