"""CASTLE† and aCASTLE†: they start at the trained method's own scores, load its weights, and fit the task better."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from repro.methods.acastle import ACastle
from repro.methods.acastle_adapted import ACastleAdapted
from repro.methods.castle import Castle
from repro.methods.castle_adapted import CastleAdapted
from tests.methods.synthetic import ScaledIdentity, World

PAIRS = [(CastleAdapted, Castle), (ACastleAdapted, ACastle)]


@pytest.mark.parametrize(("adapted", "base"), PAIRS)
def test_without_a_step_the_scores_are_the_trained_methods(adapted, base):
    world = World.make()
    trained = world.ready(base(ScaledIdentity(world.dim), world.dim, world.seen, temperature=0.5))
    method = world.ready(adapted(ScaledIdentity(world.dim), world.dim, world.seen, temperature=0.5, steps=0))
    method.base.load_state_dict(trained.state_dict())
    support, queries, _ = world.tasks()
    for own, other in zip(method.joint_logits(support, queries), trained.joint_logits(support, queries), strict=True):
        torch.testing.assert_close(own, other.detach(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("adapted", "base"), PAIRS)
def test_steps_lower_the_cross_entropy_of_stored_and_support_images(adapted, base):
    world = World.make()
    support, _, _ = world.tasks(tasks=3, ways=3, shots=2)
    images = torch.cat([world.exemplars(5).flatten(0, 1).expand(3, -1, -1), support.flatten(1, 2)], dim=1)
    labels = torch.cat([torch.arange(8).repeat_interleave(5), 8 + torch.arange(3).repeat_interleave(2)]).repeat(3)

    def loss(steps: int) -> float:
        torch.manual_seed(0)
        method = world.ready(adapted(ScaledIdentity(world.dim), world.dim, world.seen, steps=steps, lr=1.0))
        return float(cross_entropy(torch.cat(method.joint_logits(support, images), dim=2).flatten(0, 1), labels))

    assert loss(20) < loss(5) < loss(0)


@pytest.mark.parametrize("adapted", [CastleAdapted, ACastleAdapted])
def test_an_option_that_the_trained_method_does_not_have_fails(adapted):
    with pytest.raises(TypeError, match="no_such_option"):
        adapted(ScaledIdentity(5), 5, 8, no_such_option=1)
