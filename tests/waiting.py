"""Waiting for what another process does."""

import time
from collections.abc import Callable
from typing import Any

SECONDS = 400.0  # for anything to happen; a loaded machine is slow


def wait_for(condition: Callable[[], Any]) -> Any:
    """Wait until the condition gives something true, and give that."""
    deadline = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.02)
    return found
