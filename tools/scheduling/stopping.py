"""Stopping in order: nobody leaves before the last command has ended."""

import time
from pathlib import Path

from repro.files import try_to_lock
from tools.scheduling import leash


def wait_for_end(log: Path) -> None:
    """Wait until nothing writes to the log any more, as long as a leash may take."""
    deadline = time.monotonic() + 2 * leash.GRACE_SECONDS
    with log.open("ab") as stream:
        while not try_to_lock(stream) and time.monotonic() < deadline:
            time.sleep(leash.TICK)
