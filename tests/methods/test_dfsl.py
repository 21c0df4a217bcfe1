"""DFSL: composition and loss by loops, the cosine classifier's hand-over, training."""

import numpy as np
import pytest
import torch

from repro.data.seeding import generator
from repro.methods.dfsl import DFSL
from tests.methods.synthetic import ScaledIdentity, World, train


def make(world: World, **options) -> DFSL:
    return DFSL(ScaledIdentity(world.dim), world.dim, world.seen, **options)


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def stirred(method: DFSL) -> DFSL:
    """Random generator weights, so that every parameter matters."""
    random = generator(5)
    with torch.no_grad():
        for parameter in (method.query.weight, method.query.bias, method.of_mean_D, method.of_attention_D):
            parameter.add_(torch.randn(parameter.shape, generator=random), alpha=0.3)
        method.keys_SD.copy_(torch.randn(method.keys_SD.shape, generator=random))
    return method


def composed(method: DFSL, shots: np.ndarray, known: list[int]) -> np.ndarray:
    state = {name: value.detach().numpy() for name, value in method.named_parameters()}
    keys, values = unit(state["keys_SD"][known]), unit(state["seen_weight_SD"][known])
    attended = np.zeros(shots.shape[1])
    for shot in unit(shots):
        query = unit(state["query.weight"] @ shot + state["query.bias"])
        scores = np.exp(state["attention_scale"] * (keys @ query))
        attended += (scores / scores.sum()) @ values / len(shots)
    return unit(state["of_mean_D"] * unit(shots).mean(axis=0) + state["of_attention_D"] * attended)


def test_scores_are_scaled_cosines_with_seen_and_composed_classifiers():
    world = World.make()
    method = stirred(world.ready(make(world)))
    support, queries, _ = world.tasks()
    seen, unseen = (scores.detach() for scores in method.joint_logits(support, queries))
    weight, scale = unit(method.seen_weight_SD.detach().numpy()), float(method.scale.detach())
    for task in range(len(support)):
        tail = np.stack([composed(method, shots, list(range(world.seen))) for shots in support[task].numpy()])
        for query in range(queries.shape[1]):
            x = unit(queries[task, query].numpy())
            np.testing.assert_allclose(seen[task, query], scale * weight @ x, rtol=1e-3, atol=1e-4)
            np.testing.assert_allclose(unseen[task, query], scale * tail @ x, rtol=1e-3, atol=1e-4)


def test_loss_hides_the_fake_unseen_classes_from_attention_and_swaps_their_classifiers():
    world = World.make()
    method = stirred(world.ready(make(world, way=3, queries=2, tasks=2, free=4)))
    batch = world.batch(method.batch_spec(2), 0)
    losses = []
    for task, labels in enumerate(batch.labels_TC.tolist()):
        known = [label for label in range(world.seen) if label not in labels]
        joint = unit(method.seen_weight_SD.detach().numpy())
        for label, shots in zip(labels, batch.support_TCKD[task].numpy(), strict=True):
            joint[label] = composed(method, shots, known)
        queries = [(x, label) for label, xs in zip(labels, batch.query_TCQD[task].numpy(), strict=True) for x in xs]
        queries += list(zip(batch.free_BD.numpy(), batch.free_labels_B.tolist(), strict=True))
        for x, label in queries:
            logits = float(method.scale.detach()) * joint @ unit(x)
            losses.append(np.log(np.exp(logits).sum()) - logits[label])
    assert float(method.loss(batch, generator(0)).detach()) == pytest.approx(np.mean(losses), rel=1e-4)


def test_dropout_spoils_the_support_in_training_alone_and_repeatably():
    world = World.make()
    method = world.ready(make(world, dropout=0.5))
    batch = world.batch(method.batch_spec(1), 0)
    plain = method.loss(batch, generator(0))
    assert torch.equal(plain, world.ready(make(world)).loss(batch, generator(0)))
    method.train()
    assert method.loss(batch, generator(0)) > plain
    assert torch.equal(method.loss(batch, generator(1)), method.loss(batch, generator(1)))


def test_the_length_of_the_pretrained_rows_becomes_the_scale():
    world = World.make()
    method = make(world)
    rows = torch.nn.functional.normalize(torch.randn(world.seen, world.dim), dim=1)
    method.load_pretrained(14.5 * rows)
    assert float(method.scale.detach()) == pytest.approx(14.5, rel=1e-5)
    torch.testing.assert_close(method.seen_weight_SD.detach(), rows)
    assert method.pretraining == "cosine"


def test_training_lowers_the_loss_of_a_frozen_embedding():
    world = World.make(dim=12)
    method = make(world)
    method.load_pretrained(10 * torch.nn.functional.normalize(world.centres_CD[: world.seen], dim=1))
    before, after = train(method, world, shot=1, lr=0.05)
    assert after < 0.9 * before
    assert torch.equal(method.backbone.gain_D, torch.ones(12))
