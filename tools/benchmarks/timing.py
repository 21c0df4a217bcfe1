"""How a benchmark measures: both sides in turns in one process, medians over the repeats."""

import ctypes
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

Work = Callable[[], object]
Clock = Callable[[], float]


@dataclass(frozen=True)
class Part:
    """A piece of the work on both sides, and how often each side does its piece."""

    ours: Work
    reference: Work
    ours_times: float = 1.0
    reference_times: float = 1.0


def interleaved(
    ours: Work, reference: Work, repeats: int, *, scale: float = 1.0, clock: Clock = time.perf_counter
) -> dict[str, float]:
    """After one call of each: medians of both sides in seconds and of their ratio, its least and its largest value.

    The reference's seconds are multiplied by `scale`.
    """
    return interleaved_parts([Part(ours, reference, reference_times=scale)], repeats, clock=clock)


def interleaved_parts(parts: list[Part], repeats: int, *, clock: Clock = time.perf_counter) -> dict[str, float]:
    """As `interleaved`, for work in several parts, each timed alone and counted as often as it occurs."""
    for part in parts:
        part.ours()
        part.reference()
    pairs = [_both_sides(parts, clock) for _ in range(repeats)]
    ratios = [reference_s / ours_s for ours_s, reference_s in pairs]
    return {
        "ours_s": statistics.median(ours_s for ours_s, _ in pairs),
        "reference_s": statistics.median(reference_s for _, reference_s in pairs),
        "ratio": statistics.median(ratios),
        "least_ratio": min(ratios),
        "largest_ratio": max(ratios),
    }


def _both_sides(parts: list[Part], clock: Clock) -> tuple[float, float]:
    ours_s = reference_s = 0.0
    for part in parts:
        ours_s += part.ours_times * _seconds(part.ours, clock)
        reference_s += part.reference_times * _seconds(part.reference, clock)
    return ours_s, reference_s


def _seconds(work: Work, clock: Clock) -> float:
    start = clock()
    work()
    return clock() - start


def resident_peak_mb(work: Work) -> float:
    """The most memory that this process, inputs and libraries included, has resident while it works (Linux, glibc)."""
    ctypes.CDLL(None).malloc_trim(0)  # what earlier work left in the allocator is not this work's
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from what is resident now
    work()
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def at_best_threads(work: Work, numbers: Iterable[int], *, clock: Clock = time.perf_counter) -> Work:
    """The work at whichever of these numbers of threads it is fastest here, as one call at each tells."""

    def at(number: int) -> None:
        with threads(number):
            work()

    work()  # what the first call alone takes is no number's
    return partial(at, min(numbers, key=lambda number: _seconds(partial(at, number), clock)))


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Compute with this number of threads inside."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
