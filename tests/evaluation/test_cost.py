"""What evaluation costs: memory that does not grow with the number of tasks, time that grows no faster than it."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from repro.data.episodes import TaskSpec, draw_tasks
from repro.evaluation.bound import BoundTasks, TaskPool
from repro.evaluation.cell import CPU
from repro.evaluation.protocol import generalised
from repro.methods.base import Scorer
from repro.methods.castle import Castle
from tests.paths import ROOT
from tools.benchmarks import evaluation as bench

LIST, MEMORY_MB = 8000, 16
OUTPUTS_MB = 2  # twenty measures of 8000 tasks
CLEAR = Path("/proc/self/clear_refs")


def task_list() -> tuple[Scorer, BoundTasks]:
    dataset = bench.example_dataset(seen=20, test=8, seen_images=30, test_images=30)
    tasks = draw_tasks(dataset, TaskSpec("test", 5, 1, LIST, 10), 0)
    bound = BoundTasks(tasks, TaskPool("test", bench.example_embeddings(dataset, 32), dataset, CPU, MEMORY_MB))
    with torch.no_grad():
        return bench.example_method(Castle, dataset, 32).scorer(bound.pool), bound


def peak_mb(scorer: Scorer, bound: BoundTasks, number: int) -> float:
    """How far the process's memory rises above where it stands, while a number of tasks is evaluated."""
    bound.number = number
    CLEAR.write_text("5")  # the peak begins anew
    before = _status_mb("VmRSS")
    generalised(scorer, bound, 0.25)
    return _status_mb("VmHWM") - before


def _status_mb(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


@pytest.mark.skipif(not CLEAR.exists(), reason="the peak of a process's memory can be reset on Linux only")
def test_peak_memory_is_bounded_and_does_not_grow_with_the_tasks() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.evaluation.test_cost"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    few, many = json.loads(done.stdout)
    # Threads that drift apart move a peak by up to a chunk each; 7000 more tasks held at once would take 130 MB.
    assert many <= few + OUTPUTS_MB + MEMORY_MB and many <= 2 * MEMORY_MB


def test_time_grows_no_faster_than_the_number_of_tasks() -> None:
    scorer, bound = task_list()
    seconds = {}
    for number in (1000, 1000, LIST):
        bound.number = number
        start = time.process_time()
        generalised(scorer, bound, 0.25)
        seconds[number] = time.process_time() - start
    assert seconds[LIST] <= 2 * LIST / 1000 * seconds[1000]


if __name__ == "__main__":
    torch.set_num_threads(2)
    scorer, bound = task_list()
    peak_mb(scorer, bound, 1000)  # what is allocated once and kept
    print(json.dumps([peak_mb(scorer, bound, number) for number in (1000, LIST)]))
