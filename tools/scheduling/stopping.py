"""Stopping in order: nobody leaves before the last command has ended."""

import fcntl
import time
from pathlib import Path

from tools.scheduling import leash


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
