"""One `tools/repro` or `tools/cluster` per workspace."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from repro.errors import BadInput
from repro.files import try_to_lock


@contextmanager
def exclusive_workspace(file: Path, tool: str) -> Iterator[None]:
    """Hold the workspace; raises BadInput that names who holds it. The lock goes with the process, however it ends."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+") as stream:
        if not try_to_lock(stream):
            stream.seek(0)
            who = stream.read().strip() or "another process"
            raise BadInput(f"this workspace is held by {who}; wait for it, or stop it with Ctrl-C")
        stream.truncate(0)
        stream.write(f"{tool}, process {os.getpid()} on {socket.gethostname()} since {time.strftime('%H:%M:%S')}")
        stream.flush()
        yield
