"""How evaluation grows: with the number of tasks (CASTLE, 64 seen classes), and of seen classes (aCASTLE, 1,000 tasks).

Setting as in `evaluation.py`, 5 ways; in the growth with seen classes each has 50 new images. The reference is timed on
a few tasks and scaled. Peak memory is what the process has resident, inputs and libraries included; the reference
looks at a few tasks one by one, so its own is near that of the inputs.
"""

from repro.data.dataset import Dataset
from repro.methods.acastle import ACastle
from repro.methods.castle import Castle
from tools.benchmarks.evaluation import CHOICES, DIM, THREADS, case, example_dataset
from tools.benchmarks.timing import at_best_threads, interleaved, resident_peak_mb, threads

WAY, FEW_TASKS, SEEN_IMAGES = 5, 10, 50
TASKS = {"growth_1k_tasks": 1_000, "growth_10k_tasks": 10_000, "growth_100k_tasks": 100_000}
SEEN = {"growth_64_seen": 64, "growth_351_seen": 351, "growth_1000_seen": 1000}
TASKS_OF_SEEN = 1_000


def bench_growth(name: str, repeats: int) -> dict[str, float]:
    """Medians in seconds for all tasks: ours_s, reference_s, ratio; and the peaks ours_peak_mb, reference_peak_mb."""
    with threads(THREADS):
        if name in TASKS:
            return _bench(Castle, example_dataset(), TASKS[name], repeats)
        dataset = example_dataset(seen=SEEN[name], seen_images=SEEN_IMAGES)
        return _bench(ACastle, dataset, TASKS_OF_SEEN, repeats)


def _bench(kind: type[Castle] | type[ACastle], dataset: Dataset, number: int, repeats: int) -> dict[str, float]:
    few, peaks = min(FEW_TASKS, number), list[float]()
    evaluate, reference = case(kind, dataset, DIM, WAY, number, few)

    def ours() -> None:
        peaks.append(resident_peak_mb(evaluate))

    figures = interleaved(ours, at_best_threads(reference, CHOICES), repeats, scale=number / few)
    return figures | {"ours_peak_mb": max(peaks), "reference_peak_mb": resident_peak_mb(reference)}
