"""Pieces of work side by side: results in order, the same bytes with any number of threads, errors passed on."""

import threading

import pytest
import torch

from repro.data.dataset import Dataset
from repro.data.episodes import TaskSpec, draw_tasks
from repro.errors import BadInput
from repro.evaluation import bound as binding
from repro.evaluation.bound import BoundTasks, TaskPool
from repro.evaluation.protocol import generalised
from repro.evaluation.workers import in_order
from repro.methods.acastle import ACastle
from tools.benchmarks import evaluation as bench
from tools.benchmarks.timing import threads

CPU = torch.device("cpu")


@pytest.mark.parametrize("number", [1, 3])
def test_results_come_in_order_without_gradients_and_the_threads_are_given_back(number: int) -> None:
    weight = torch.ones(1, requires_grad=True)
    with threads(number):
        found = list(in_order(lambda piece: (piece, (weight * piece).requires_grad), range(20), CPU))
        assert found == [(piece, False) for piece in range(20)]
        assert torch.get_num_threads() == number
        fresh: list[int] = []
        other = threading.Thread(target=lambda: fresh.append(torch.get_num_threads()))
        other.start()
        other.join()
        assert fresh == [number]


def test_only_a_few_results_wait() -> None:
    begun: list[int] = []

    def work(piece: int) -> int:
        begun.append(piece)
        return piece

    with threads(2):
        results = in_order(work, range(1000), CPU)
        assert next(results) == 0
        assert len(begun) <= 4
        results.close()  # type: ignore[attr-defined]
        assert len(begun) <= 4 and torch.get_num_threads() == 2


@pytest.mark.parametrize("number", [1, 2])
def test_an_error_of_one_piece_ends_the_work(number: int) -> None:
    def work(piece: int) -> int:
        if piece == 5:
            raise BadInput("the sixth piece is bad")
        return piece

    with threads(number), pytest.raises(BadInput, match="the sixth piece is bad"):
        list(in_order(work, range(1000), CPU))


def test_measures_are_the_same_bytes_with_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(binding.BLOCK_QUERIES, "cpu", 5 * 40)
    dataset: Dataset = bench.example_dataset(seen=9, test=6, seen_images=20, test_images=25)
    method, embedded = bench.example_method(ACastle, dataset, 16), bench.example_embeddings(dataset, 16)
    tasks = draw_tasks(dataset, TaskSpec("test", 4, 2, 333, 5), 0)
    bound = BoundTasks(tasks, TaskPool("test", embedded, dataset, CPU))
    with torch.no_grad():
        scorer = method.scorer(bound.pool)
    found = []
    for number in (1, 2, 3):
        with threads(number):
            found.append(generalised(scorer, bound, 0.25))
    for other in found[1:]:
        assert found[0].curve is not None and other.curve is not None and torch.equal(found[0].curve, other.curve)
        for name, values in found[0].values.items():
            assert values.numpy().tobytes() == other.values[name].numpy().tobytes(), name
