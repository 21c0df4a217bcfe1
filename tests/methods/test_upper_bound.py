"""The upper bound: prototypes from all images of the pool but the queries, by loops."""

import numpy as np
import torch

from repro.data.seeding import generator
from repro.methods.base import Pool, TaskBatch
from repro.methods.protonet import ProtoNet
from repro.methods.upper_bound import UpperBound
from tests.methods.synthetic import ScaledIdentity, World


def pool_and_tasks(world: World) -> tuple[Pool, TaskBatch]:
    """Twelve images per class; each task takes 3 unseen classes, 1 shot, 4 queries each, and 5 seen queries."""
    labels = torch.arange(len(world.centres_CD)).repeat_interleave(12)
    random = generator(7)
    support, queries = [], []
    for _ in range(5):
        tail = world.seen + torch.randperm(len(world.centres_CD) - world.seen, generator=random)[:3]
        rows = torch.stack([12 * label + torch.randperm(12, generator=random)[:5] for label in tail])
        support.append(rows[:, :1])
        seen = torch.randperm(12 * world.seen, generator=random)[:5]
        queries.append(torch.cat([rows[:, 1:].flatten(), seen]))
    return Pool(world.images(labels, 5), labels), TaskBatch(torch.stack(support), torch.stack(queries))


def test_prototypes_average_every_image_of_the_class_but_the_tasks_queries():
    world = World.make()
    method = world.ready(UpperBound(ScaledIdentity(world.dim), world.dim, world.seen, temperature=2.0))
    pool, tasks = pool_and_tasks(world)
    scores = method.scorer(pool)(tasks)
    images, labels = pool.embeddings_ND.numpy(), pool.labels_N.numpy()
    for task in range(5):
        used = set(tasks.queries_TQ[task].tolist())
        means = []
        for row in tasks.support_TWK[task, :, 0].tolist():
            own = [x for n, x in enumerate(images) if labels[n] == labels[row] and n not in used]
            means.append(np.mean(own, axis=0))
        for query, row in enumerate(tasks.queries_TQ[task].tolist()):
            expected = [-((images[row] - mean) ** 2).sum() / 2 for mean in means]
            np.testing.assert_allclose(scores.unseen_TQW[task, query], expected, rtol=1e-3, atol=1e-3)


def test_seen_scores_are_protonets_and_its_weights_load():
    world = World.make()
    protonet = world.ready(ProtoNet(ScaledIdentity(world.dim), world.dim, world.seen))
    method = UpperBound(ScaledIdentity(world.dim), world.dim, world.seen)
    method.base.load_state_dict(protonet.state_dict())
    pool, tasks = pool_and_tasks(world)
    own, other = method.scorer(pool), protonet.scorer(pool)
    assert torch.equal(own(tasks).seen_logits(9), other(tasks).seen_logits(9))
    assert torch.equal(own(tasks).best_seen_TQ, other(tasks).best_seen_TQ)
    assert torch.equal(own.unseen_logits(tasks), own(tasks).unseen_TQW)


def test_more_support_classifies_unseen_queries_better():
    world = World.make(unseen=6, dim=5, noise=2.0)
    pool, tasks = pool_and_tasks(world)
    own = torch.arange(3).repeat_interleave(4).expand(5, -1)

    def accuracy(kind: type) -> float:
        method = world.ready(kind(ScaledIdentity(world.dim), world.dim, world.seen))
        return float((method.scorer(pool)(tasks).unseen_TQW[:, :12].argmax(-1) == own).float().mean())

    assert accuracy(UpperBound) > accuracy(ProtoNet)
