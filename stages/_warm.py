"""A warm process that stages are forked from: libraries are imported once, code of this repository never.

The launcher sends its arguments, working folder, environment and standard streams over a private Unix socket; the warm
process forks, the child runs the stage with them, and its exit code comes back. The child dies with its launcher. The
warm process leaves after some idle seconds. Only pinned third-party libraries are preloaded, so edits are always seen.
"""

import contextlib
import hashlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

PRELOADED = ("torch", "timm", "sacred", "pandas", "pyarrow.parquet", "safetensors.torch", "pydantic", "yaml", "tqdm")
IDLE_SECONDS = 30.0
START_SECONDS = 60.0
STREAMS = (0, 1, 2)
READ_AT_IMPORT = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "MKL_NUM_THREADS")  # of torch, that is of the warm process
ATTEMPTS = 3


def address() -> Path:
    """The socket of this interpreter, lock file and user, in a folder that nobody else may enter."""
    folder = Path(tempfile.gettempdir()) / f"castle-repro-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise SystemExit(f"error: {folder} is open to other users; remove it, or set REPRO_WARM=0")
    lock = Path(__file__).parents[1] / "requirements.lock"
    threads = [os.environ.get(name, "") for name in READ_AT_IMPORT]
    key = hashlib.sha256(json.dumps([sys.executable, *threads]).encode() + lock.read_bytes()).hexdigest()[:16]
    return folder / f"{key}.sock"


# The launcher's side


def run(arguments: list[str]) -> int:
    """Run a stage in a child of the warm process, starting that first where there is none; give the exit code."""
    for _ in range(ATTEMPTS):
        try:
            connection, child = _hand_over(arguments)
            break
        except ConnectionError:  # it was just leaving, idle: start another
            continue
    else:
        raise SystemExit("error: the warm process does not accept work; set REPRO_WARM=0 to run without")
    with connection:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda received, _frame: _forward(child, received))
        try:
            return int.from_bytes(_read(connection, 1), "big")
        except ConnectionError:
            raise SystemExit("error: the warm process died; run the command again, or set REPRO_WARM=0") from None


def _forward(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.kill(child, number)


def _hand_over(arguments: list[str]) -> tuple[socket.socket, int]:
    """Send the request; give the open connection and the process that runs the stage."""
    connection = _connect()
    request = json.dumps({"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}).encode()
    try:
        socket.send_fds(connection, [len(request).to_bytes(8, "big")], list(STREAMS))
        connection.sendall(request)
        return connection, int.from_bytes(_read(connection, 8), "big")
    except ConnectionError:
        connection.close()
        raise


def _connect() -> socket.socket:
    place = address()
    with contextlib.suppress(OSError):
        return _connected(place)
    command = [sys.executable, "-m", "stages._warm", str(place)]
    log = place.with_suffix(".log")  # its own streams: whoever waits for ours to close must not wait for it
    with log.open("w") as stream:
        root = Path(__file__).parents[1]
        started = subprocess.Popen(
            command, cwd=root, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            return _connected(place)
        if started.poll():
            raise SystemExit(
                f"error: {sys.executable} cannot start the warm process (see {log}); "
                "run `source .venv/bin/activate` first, or set REPRO_WARM=0 to run without"
            )
        time.sleep(0.02)
    raise SystemExit(
        f"error: no warm process came up in {START_SECONDS:.0f} s (see {log}); set REPRO_WARM=0 to run without"
    )


def _connected(place: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(place))
    except OSError:
        connection.close()
        raise
    return connection


def _read(connection: socket.socket, size: int) -> bytes:
    """Read exactly `size` bytes; raises ConnectionError where the other side is gone."""
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionResetError
        data += part
    return data


# The warm process's side


def serve(place: Path) -> None:
    """Preload, then fork a child for each connection until nobody has come for a while."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        try:
            door.bind(f"{place}.{os.getpid()}")
        except OSError as error:
            raise SystemExit(f"error: cannot open {place} ({error}); set REPRO_WARM=0") from error
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries about each other
            for name in PRELOADED:
                __import__(name)
        door.listen(64)
        os.replace(f"{place}.{os.getpid()}", place)  # the newest process takes over; an older one leaves when idle
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        waker, wake_end = socket.socketpair()
        wake_end.setblocking(False)
        signal.set_wakeup_fd(wake_end.fileno(), warn_on_full_buffer=False)
        _serve_until_idle(door, waker)


def _serve_until_idle(door: socket.socket, waker: socket.socket) -> None:
    children: dict[int, socket.socket] = {}
    while True:
        readable, _, _ = select.select([door, waker, *children.values()], [], [], None if children else IDLE_SECONDS)
        if not readable and not children:
            return
        if waker in readable:
            waker.recv(4096)
        _collect(children)
        for pid, connection in children.items():
            if connection in readable:  # the launcher is gone: nobody wants the result
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
        if door in readable:
            connection, _ = door.accept()
            try:
                pid = _fork(connection, [door, waker, *children.values()])
            except (OSError, ValueError):  # the launcher died while handing over
                connection.close()
                continue
            children[pid] = connection
            with contextlib.suppress(OSError):  # the launcher died just now: the next turn sees it and ends the child
                connection.sendall(pid.to_bytes(8, "big"))


def _collect(children: dict[int, socket.socket]) -> None:
    """Answer the launchers of children that have ended."""
    for pid in list(children):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            with children.pop(pid) as connection, contextlib.suppress(OSError):
                connection.sendall(bytes([code if code >= 0 else 128 - code]))


def _fork(connection: socket.socket, others: list[socket.socket]) -> int:
    """Read a request and fork the stage that it asks for; the streams that come with it are the child's alone."""
    head, streams, _, _ = socket.recv_fds(connection, 8, len(STREAMS))
    try:
        request = json.loads(_read(connection, int.from_bytes(head, "big")))
        pid = os.fork()
        if pid == 0:
            _become(request, streams, [connection, *others])
    finally:
        for stream in streams:
            os.close(stream)
    return pid


def _become(request: dict[str, Any], streams: list[int], inherited: list[socket.socket]) -> None:
    """Turn this child into the stage: its streams, folder, environment and arguments. Never returns."""
    code = 1
    try:
        os.setpgid(0, 0)
        for other in inherited:
            other.close()
        _take_over(request, streams)
        runpy.run_module(f"stages.{sys.argv[0]}", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as exit_:
        if isinstance(exit_.code, str):
            print(exit_.code, file=sys.stderr)
        code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for written in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                written.flush()
        os._exit(code)


def _take_over(request: dict[str, Any], streams: list[int]) -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for target, stream in zip(STREAMS, streams, strict=True):
        os.dup2(stream, target)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.path[0] = request["folder"]
    for name in [name for name in sys.modules if name.split(".")[0] in ("stages", "repro")]:
        del sys.modules[name]
    sys.argv = request["arguments"]


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
