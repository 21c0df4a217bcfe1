"""How a benchmark times: both sides in turns in one process, medians over the repeats."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

Work = Callable[[], object]


def interleaved(
    ours: Work,
    reference: Work,
    repeats: int,
    *,
    scale: float = 1.0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Medians of both sides in seconds and of their ratio, after one call of each; the reference's times `scale`."""
    ours()
    reference()
    pairs = [(_seconds(ours, clock), scale * _seconds(reference, clock)) for _ in range(repeats)]
    return {
        "ours_s": statistics.median(ours_s for ours_s, _ in pairs),
        "reference_s": statistics.median(reference_s for _, reference_s in pairs),
        "ratio": statistics.median(reference_s / ours_s for ours_s, reference_s in pairs),
    }


def _seconds(work: Work, clock: Callable[[], float]) -> float:
    start = clock()
    work()
    return clock() - start


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Compute with so many threads inside."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
