"""One tool at a time runs stages in a workspace, or puts other parameters and results into it."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from repro.errors import BadInput
from repro.files import try_to_lock

OWN = Path(".cluster")  # logs and locks, in the workspace


@contextmanager
def exclusive_workspace(root: Path, tool: str) -> Iterator[None]:
    """Hold the workspace; raises BadInput that names who holds it. The lock goes with the process, however it ends."""
    file = root / OWN / "lock"
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists() and not file.is_file():
        raise BadInput(f"{file} is no plain file, expected the lock of this workspace; move it away")
    with file.open("a+", errors="replace") as stream:
        if not try_to_lock(stream):
            stream.seek(0)
            who = stream.read().strip() or "another process"
            raise BadInput(f"this workspace is held by {who}; wait for it, or stop it with Ctrl-C")
        stream.truncate(0)
        stream.write(f"{tool}, process {os.getpid()} on {socket.gethostname()} since {time.strftime('%H:%M:%S')}")
        stream.flush()
        yield
