"""Whether a figure was taken on a machine that others used: then a ratio says as much about them as about us."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

QUIET = 0.25  # cores that others may use
IDLE = (3, 4)  # of /proc/stat: idle, and waiting for a disk


@contextmanager
def cores_of_others() -> Iterator[list[float]]:
    """Give a list that has, once the block has run, how many cores others used meanwhile (Linux; elsewhere 0)."""
    found: list[float] = []
    began, all_before, own_before = time.monotonic(), _all_seconds(), _own_seconds()
    yield found
    used = _all_seconds() - all_before - (_own_seconds() - own_before)
    found.append(max(0.0, used) / (time.monotonic() - began))


def _all_seconds() -> float:
    counted = Path("/proc/stat")
    if not counted.exists():
        return 0.0
    numbers = counted.read_text().splitlines()[0].split()[1:9]  # guests are counted in the first two again
    busy = sum(int(number) for place, number in enumerate(numbers) if place not in IDLE)
    return busy / float(os.sysconf("SC_CLK_TCK"))


def _own_seconds() -> float:
    own = os.times()
    return own.user + own.system + own.children_user + own.children_system
