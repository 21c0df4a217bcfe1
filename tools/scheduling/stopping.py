"""Stopping in order: signals are noted and not raised, and nobody leaves before the last command has ended."""

import fcntl
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.scheduling import leash


@contextmanager
def signals_noted() -> Iterator[list[int]]:
    """Give the list that SIGINT and SIGTERM go to, so that what is under way, such as a commit, ends whole."""
    noted: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda received, _: noted.append(received)) for number in numbers}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def wait_for_end(log: Path) -> None:
    """Wait until nothing writes to the log any more, as long as a leash may take."""
    deadline = time.monotonic() + 2 * leash.GRACE_SECONDS
    with log.open("ab") as stream:
        while time.monotonic() < deadline:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                time.sleep(leash.TICK)
