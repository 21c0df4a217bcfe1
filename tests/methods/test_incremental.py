"""LwF and iCaRL: predictions by loops from the fine-tuned model, forgetting held back by distillation."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from repro.methods.acastle_adapted import ACastleAdapted
from repro.methods.base import Method
from repro.methods.castle_adapted import CastleAdapted
from repro.methods.icarl import ICaRL
from repro.methods.lwf import LwF
from tests.methods.synthetic import ScaledIdentity, World


def make(kind: type[LwF], world: World, **options) -> LwF:
    return world.ready(kind(ScaledIdentity(world.dim), world.dim, world.seen, **options))


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def test_lwf_predicts_with_the_tuned_classifier():
    world = World.make()
    method = make(LwF, world)
    support, queries, _ = world.tasks()
    seen, unseen = method.joint_logits(support, queries)
    tuned = method.tune(support)
    for task in range(len(support)):
        w, scale, bias = (part[task].numpy() for part in (tuned.weights_TCD, tuned.scale_TD, tuned.bias_TD))
        for query in range(queries.shape[1]):
            expected = w @ ((1 + scale) * queries[task, query].numpy() + bias)
            joint = torch.cat([seen[task, query], unseen[task, query]])
            np.testing.assert_allclose(joint, expected, rtol=1e-4, atol=1e-4)


def test_lwf_starts_from_the_seen_classifier_and_prototypes_of_its_length():
    world = World.make()
    method = make(LwF, world, steps=0)
    support, _, _ = world.tasks()
    weights = method.tune(support).weights_TCD.numpy()
    seen = method.seen_weight_SD.numpy()
    for task in range(len(support)):
        np.testing.assert_allclose(weights[task, : world.seen], seen, rtol=1e-6)
        tail = unit(support[task].numpy().mean(axis=1)) * np.linalg.norm(seen, axis=1).mean()
        np.testing.assert_allclose(weights[task, world.seen :], tail, rtol=1e-4)


def test_icarl_predicts_with_the_nearest_mean_of_exemplars():
    world = World.make()
    method = make(ICaRL, world)
    support, queries, _ = world.tasks()
    seen, unseen = method.joint_logits(support, queries)
    tuned, stored = method.tune(support), world.exemplars(5).numpy()
    for task in range(len(support)):
        scale, bias = 1 + tuned.scale_TD[task].numpy(), tuned.bias_TD[task].numpy()
        means = [unit(unit(scale * images + bias).mean(axis=0)) for images in [*stored, *support[task].numpy()]]
        for query in range(queries.shape[1]):
            x = unit(scale * queries[task, query].numpy() + bias)
            expected = [-((x - mean) ** 2).sum() for mean in means]
            joint = torch.cat([seen[task, query], unseen[task, query]])
            np.testing.assert_allclose(joint, expected, rtol=1e-3, atol=1e-4)


def test_tuning_lowers_the_cross_entropy_of_stored_and_support_images():
    world = World.make()
    support, _, _ = world.tasks(tasks=3, ways=3, shots=2)
    stored = world.exemplars(5)
    images = torch.cat([stored.flatten(0, 1).expand(3, -1, -1), support.flatten(1, 2)], dim=1)
    labels = torch.cat([torch.arange(8).repeat_interleave(5), 8 + torch.arange(3).repeat_interleave(2)])

    def loss(steps: int) -> float:
        tuned = make(LwF, world, steps=steps, lr=1.0, weight=0.1).tune(support)
        return float(cross_entropy(tuned.logits(images).flatten(0, 1), labels.repeat(3)))

    assert loss(20) < loss(5) < loss(0)


def test_distillation_keeps_the_seen_outputs_nearer_to_the_old_ones():
    world = World.make()
    support, queries, _ = world.tasks()
    old = queries @ (world.centres_CD[: world.seen] * 0.5).T

    def drift(weight: float) -> float:
        seen, _ = make(LwF, world, steps=20, weight=weight).joint_logits(support, queries)
        return float((seen.softmax(-1) - old.softmax(-1)).abs().mean())

    assert drift(10.0) < drift(0.0)


def test_icarls_means_are_those_of_the_moved_features_of_both_kinds_of_images():
    """Bent by a strong rate, seen and unseen scores both leave what nearest means of the old features say."""
    world = World.make()
    support, queries, _ = world.tasks()
    start, moved = (make(ICaRL, world, steps=steps, lr=30.0).joint_logits(support, queries) for steps in (0, 5))
    for before, after in zip(start, moved, strict=True):
        assert (after - before).abs().mean() > 0.01
    tuned = make(ICaRL, world, steps=5, lr=30.0).tune(support)
    assert tuned.scale_TD.abs().max() > 0.01 and tuned.bias_TD.abs().max() > 0.01


@pytest.mark.parametrize("kind", [LwF, ICaRL, CastleAdapted, ACastleAdapted])
def test_the_settings_that_validation_chooses_from_differ(kind: type[Method]) -> None:
    """That they are no more than CASTLE has is held beside tools/tuning.yaml."""
    assert 1 < len({str(options) for options in kind.tuning_grid}) == len(kind.tuning_grid)


def test_every_candidate_of_the_tuning_grid_is_a_valid_set_of_options():
    world = World.make()
    support, queries, _ = world.tasks()
    for options in LwF.tuning_grid:
        seen, unseen = make(LwF, world, **options).joint_logits(support, queries)
        assert seen.isfinite().all() and unseen.isfinite().all()
