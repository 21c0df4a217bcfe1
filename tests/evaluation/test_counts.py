"""Counts by image and class: against a loop over queries, the same for any threads and memory, small and cheap."""

import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from repro.data.dataset import Dataset
from repro.data.episodes import TaskSpec, draw_tasks
from repro.evaluation import bound as binding
from repro.evaluation.bound import BoundTasks, TaskPool
from repro.evaluation.counts import Counts
from repro.evaluation.protocol import few_shot, generalised
from repro.files import seal
from repro.methods.castle import Castle
from repro.results.counts import CONFUSIONS, IMAGES, CellCounts, write_counts
from tests.evaluation.test_protocol import CPU, SPEC, Nearest, TaskDependent, bind, random_embeddings
from tools.benchmarks import evaluation as bench
from tools.benchmarks.timing import threads

BIAS = 0.75


def counts_of(method: Nearest, dataset: Dataset, memory_mb: int = 256) -> tuple[dict, dict]:
    bound = bind(dataset, random_embeddings(dataset), draw_tasks(dataset, SPEC, 0), memory_mb=memory_mb)
    found = generalised(method.scorer(bound.pool), bound, BIAS).counts
    assert found is not None
    return found.images(), found.confusions()


@pytest.mark.parametrize("kind", [Nearest, TaskDependent])
def test_counts_equal_a_loop_over_queries(tiny: Dataset, kind: type[Nearest]) -> None:
    method, tasks, embedded = kind(tiny.seen_classes), draw_tasks(tiny, SPEC, 0), random_embeddings(tiny)
    asked, right, taken = Counter(), {name: Counter() for name in ("own", "joint", "calibrated")}, Counter()
    for t in range(SPEC.tasks):
        queries = torch.cat([tasks.seen_TQ[t], tasks.query_TWQ[t].flatten()]).long()
        logits = method.joint_logits(embedded.of(tasks.support_TWK[t].long())[None], embedded.of(queries)[None])
        classes = tasks.classes_TW[t].tolist()
        for row, seen, unseen in zip(queries.tolist(), logits[0][0].tolist(), logits[1][0].tolist(), strict=True):
            truth, best = int(tiny.labels_N[row]), classes[unseen.index(max(unseen))]
            of_seen = seen.index(max(seen))
            answers = {"own": of_seen if truth < tiny.seen_classes else best}
            for name, bias in (("joint", 0.0), ("calibrated", BIAS)):
                answers[name] = of_seen if max(seen) - max(unseen) >= bias else best
            asked[row] += 1
            taken[truth, answers["joint"]] += 1
            for name, answer in answers.items():
                right[name][row] += answer == truth
    images, confusions = counts_of(method, tiny)
    rows = images["image"].tolist()
    assert rows == sorted(asked) and images["asked"].tolist() == [asked[row] for row in rows]
    assert images["label"].tolist() == tiny.labels_N[rows].tolist()
    for name, counted in right.items():
        assert images[name].tolist() == [counted[row] for row in rows], name
    pairs = zip(confusions["truth"].tolist(), confusions["predicted"].tolist(), strict=True)
    assert dict(zip(pairs, confusions["count"].tolist(), strict=True)) == dict(taken)


def test_counts_are_the_same_for_any_threads_and_memory(tiny: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    method = Nearest(tiny.seen_classes)
    expected = counts_of(method, tiny)
    monkeypatch.setitem(binding.BLOCK_QUERIES, "cpu", 5 * 24)
    for number, memory_mb in ((1, 0), (3, 1), (3, 256)):
        with threads(number):
            found = counts_of(method, tiny, memory_mb)
        for ours, theirs in zip(found, expected, strict=True):
            assert {name: values.tolist() for name, values in ours.items()} == {
                name: values.tolist() for name, values in theirs.items()
            }


def test_counting_takes_at_most_15_percent_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what a cell measures on narrow embeddings, where counting weighs most, before anything is written."""
    dataset = bench.example_dataset()
    pool = TaskPool("test", bench.example_embeddings(dataset, 64), dataset, CPU)
    five, twenty = (
        BoundTasks(draw_tasks(dataset, TaskSpec("test", way, 1, 1000), 0), pool, limit)
        for way, limit in ((5, 1000), (20, 250))
    )
    spent, add = [], Counts.add

    def timed(*arguments) -> None:
        start = time.thread_time()
        add(*arguments)
        spent.append(time.thread_time() - start)

    monkeypatch.setattr(Counts, "add", timed)
    shares = []
    with torch.no_grad(), threads(1):
        scorer = bench.example_method(Castle, dataset, 64).scorer(pool.pool)
        for _ in range(3):
            spent.clear()
            start = time.thread_time()
            generalised(scorer, five, BIAS)
            few_shot(scorer, five)
            generalised(scorer, twenty, BIAS, detailed=False)
            shares.append(sum(spent) / (time.thread_time() - start - sum(spent)))
    assert min(shares) <= 0.15


def test_counts_of_the_largest_dataset_fit_into_two_megabytes(tmp_path: Path) -> None:
    """TieredImageNet: 351 + 160 classes, 1,300 images of each unseen class, 10,000 tasks at 5 ways and 1,000 at 160."""
    random, images, confusions = np.random.default_rng(0), [], []
    label = np.concatenate([np.repeat(np.arange(351), 100), np.repeat(np.arange(448, 608), 1300)])
    for way, queries in ((5, 1_500_000), (160, 4_800_000)):
        asked = random.poisson(queries / len(label), len(label))
        own = random.binomial(asked, 0.7)
        right = (own, random.binomial(own, 0.7), random.binomial(own, 0.8))
        images.append((np.full_like(label, way), np.arange(len(label)), label, asked, *right))
        count = random.poisson(0.5 * queries / 511**2 * random.exponential(1, 511**2))
        (met,) = count.nonzero()
        confusions.append((np.full_like(met, way), met // 511, met % 511, count[met]))
    write_counts(
        tmp_path,
        dict(zip(IMAGES, map(np.concatenate, zip(*images, strict=True)), strict=True)),
        dict(zip(CONFUSIONS, map(np.concatenate, zip(*confusions, strict=True)), strict=True)),
    )
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 2_000_000


def test_what_was_counted_is_read_back_by_way(tiny: Dataset, tmp_path: Path) -> None:
    images, confusions = counts_of(Nearest(tiny.seen_classes), tiny)
    write_counts(tmp_path, *({"way": np.full(len(next(iter(of.values()))), 3)} | of for of in (images, confusions)))
    seal(tmp_path)
    found = CellCounts(tmp_path, 3)
    assert found.confusions["count"].sum() == images["asked"].sum() == SPEC.tasks * 24
    diagonal = found.confusions["truth"] == found.confusions["predicted"]
    assert found.confusions["count"][diagonal].sum() == images["joint"].sum()
    for label, share in found.of_classes("joint").items():
        own = images["label"] == label
        assert share == pytest.approx(100 * images["joint"][own].sum() / images["asked"][own].sum())
    assert not len(CellCounts(tmp_path, 5).images["image"])
