"""The benchmark's per-task reference gives what the batched evaluation gives."""

import pytest
import torch

from repro.data.episodes import TaskSpec, draw_tasks
from repro.evaluation.bound import BoundTasks, TaskPool
from repro.methods.acastle import ACastle
from repro.methods.castle import Castle
from tools.benchmarks import evaluation as bench
from tools.benchmarks.all import RATIOS


@pytest.mark.parametrize("kind", [Castle, ACastle])
@pytest.mark.parametrize("shot", [1, 3])
def test_the_reference_and_the_batched_evaluation_agree(kind: type[Castle] | type[ACastle], shot: int) -> None:
    dataset = bench.example_dataset(seen=9, test=6, seen_images=20, test_images=25)
    method, embedded = bench.example_method(kind, dataset, 16), bench.example_embeddings(dataset, 16)
    tasks = draw_tasks(dataset, TaskSpec("test", 4, shot, 30, 5), 0)
    bound = BoundTasks(tasks, TaskPool("test", embedded, dataset, torch.device("cpu")))
    found = bench.measured(method, bound, with_map=True).values
    for t in range(tasks.spec.tasks):
        expected = bench.reference_task(method, embedded, dataset, tasks, t, bench.BIAS, with_map=True)
        assert found.keys() - expected.keys() == {"conf_seen", "conf_unseen", "conf_ratio"}
        for name, value in expected.items():
            assert found[name][t].item() == pytest.approx(value, abs=1e-4), (name, t)
    assert found["hm"].std() > 1 and 5 < found["hm"].mean() < 95


def test_the_reference_sampler_draws_tasks_of_the_same_shape() -> None:
    dataset = bench.example_dataset(seen=9, test=6, seen_images=20, test_images=25)
    for classes, images, seen in bench.reference_sampling(dataset, TaskSpec("test", 4, 2, 1, 5), 3):
        assert classes.shape == (4,) and images.shape == (4, 7) and seen.shape == (20,)
        assert (dataset.labels_N[images] == classes[:, None]).all()


def test_the_benchmark_times_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "TASKS", 4)
    monkeypatch.setattr(bench, "REFERENCE_TASKS", 1)
    monkeypatch.setattr(bench, "REFERENCE_TASKS_MAP", 1)
    for name in ("eval_castle_5way", "sampling_20way"):
        found = bench.bench_evaluation(name, 1)
        assert found.keys() == {"ours_s", "reference_s", *RATIOS}
        assert found["ratio"] == pytest.approx(found["reference_s"] / found["ours_s"])
