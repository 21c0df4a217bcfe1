"""The embedded Mongo-wire server: NX-27017 on SQLite, with the answers that Omniboard needs (`handler.py`).

    python tools/tracking/server.py FOLDER PORT

It listens on 127.0.0.1 only.
"""

import asyncio
import contextlib
import os
import signal
import sys
import threading
from importlib.metadata import version
from pathlib import Path

from nx_27017.server import run_server

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.tracking.handler import Handler  # noqa: E402

PINNED = {"nx-27017": "0.8.1", "neosqlite": "1.17.2"}


def check_versions() -> None:
    """End with one sentence where the packages are not those that this adapter was written for."""
    for package, expected in PINNED.items():
        if (found := version(package)) != expected:
            sys.exit(f"error: {package} {found} is installed, {expected} expected; run tools/setup")


def serve(folder: Path, port: int) -> None:
    """Serve the databases under `folder` until SIGTERM, an interrupt or the end of standard input."""
    from repro.files import try_to_lock

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:  # held while this runs; the other tools look here and at the port
        if not try_to_lock(lock):
            sys.exit(f"error: another server uses {folder}; stop the other tools/omniboard first")
        (folder / "port").write_text(str(port))
        threading.Thread(target=_leave_with_parent, daemon=True).start()
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        try:
            asyncio.run(run_server("127.0.0.1", port, Handler(data_dir=str(folder))))
        except OSError as error:
            sys.exit(f"error: cannot listen on port {port} ({error.strerror}); choose another one")


def _leave_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)  # SQLite's journal keeps what was answered; nothing else is pending


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    check_versions()
    with contextlib.suppress(KeyboardInterrupt):
        serve(Path(sys.argv[1]), int(sys.argv[2]))
