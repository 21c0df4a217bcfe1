"""A process that has torch, timm and Sacred loaded, from which `tools/repro` lets the stages of one call be forked.

Importing them costs seconds, and a grid has more than a hundred stages. Only libraries are loaded, code of this
repository never, so edits are always seen. The server belongs to the call that starts it: it listens in a folder of its
own that only this user may enter, `dvc repro` gets the address in REPRO_FORKSERVER, and it ends when that call ends,
stages included. So server and stages have one umask, nice value, limits and namespace, and what libraries read when
they are imported (OMP_NUM_THREADS) is the call's as well.

A stage's command connects, and the server forks at once. The child says its number, and gets the stage's arguments,
folder, environment and standard streams; it runs the stage and says its exit code. It dies when its command does. Where
nobody answers, the command runs the stage itself.
"""

import contextlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from stages.launching.allocator import keep_freed_memory
from stages.launching.output import escape_what_is_lacking

ADDRESS = "REPRO_FORKSERVER"
ROOT = Path(__file__).resolve().parents[2]
PRELOADED = ("torch", "timm", "sacred", "pandas", "pyarrow.parquet", "safetensors.torch", "pydantic", "yaml", "tqdm")
ANSWER_SECONDS = 60.0  # the first stage waits for the imports
REQUEST_SECONDS = 10.0
STOP_SECONDS = 20.0
STREAMS = (0, 1, 2)
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
KILLED = 128 + signal.SIGKILL


class NoAnswer(Exception):
    """The server cannot be used; the message says why."""


# tools/repro's side


@contextlib.contextmanager
def fork_server(preloaded: Sequence[str] = PRELOADED) -> Iterator[dict[str, str]]:
    """Run a server while the block lasts; give the environment in which stages find it."""
    folder = tempfile.mkdtemp(prefix="stages-")
    # Its standard input closes with this process, however that ends. A session of its own: an interrupt at the terminal
    # goes to the stages' commands, which pass it on.
    server = subprocess.Popen(
        [sys.executable, "-m", "stages.launching.forkserver", folder, *preloaded],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield {ADDRESS: f"{folder}/socket"}
    finally:
        assert server.stdin
        server.stdin.close()
        try:
            server.wait(2 * STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        shutil.rmtree(folder, ignore_errors=True)


# The side of a stage's command


def hand_over(arguments: list[str]) -> tuple[socket.socket, int]:
    """Let a child of the server run a stage; give the connection to it and its process number. Raises NoAnswer."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    request = {"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
    content = json.dumps(request).encode()
    try:
        _require_own(os.environ[ADDRESS])
        connection.settimeout(ANSWER_SECONDS)
        connection.connect(os.environ[ADDRESS])
        child = int.from_bytes(_read(connection, 8), "big")
        socket.send_fds(connection, [len(content).to_bytes(8, "big")], list(STREAMS))
        connection.sendall(content)
        connection.settimeout(None)
        return connection, child
    except TimeoutError:
        connection.close()
        raise NoAnswer(f"no answer within {ANSWER_SECONDS:.0f} s") from None
    except OSError as error:
        connection.close()
        raise NoAnswer(error.strerror or type(error).__name__) from None


def follow(connection: socket.socket, child: int) -> int:
    """Pass signals on to the stage, and give its exit code once it has ended."""

    def forward(number: int, _frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(child, number)

    for number in FORWARDED:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, forward)
    try:
        return _read(connection, 1)[0]
    except ConnectionError:
        print("error: the stage's process was killed; run the same command again", file=sys.stderr)
        return KILLED


def _require_own(address: str) -> None:
    """Raise OSError where the address is no socket of this user's."""
    status = os.lstat(address)
    if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.getuid():
        raise PermissionError(0, "it is no socket of yours")


def _read(connection: socket.socket, size: int) -> bytes:
    """Read exactly `size` bytes; raises ConnectionError where the other side is gone."""
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionResetError(0, "the connection was closed")
        data += part
    return data


# The server's side


def serve(folder: Path, preloaded: Sequence[str]) -> None:
    """Fork a child for each connection until standard input ends; then stop the stages that still run."""
    children: set[int] = set()
    escape_what_is_lacking()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.bind(f"{folder}/socket")
            door.listen(64)
            while 0 not in (ready := select.select([0, door.fileno()], [], [], 1.0)[0]):
                _forget_ended(children)
                if ready:
                    _preload(preloaded)
                    with contextlib.suppress(OSError), door.accept()[0] as connection:  # no more processes, say
                        if (child := os.fork()) == 0:
                            door.close()
                            _become_stage(connection)
                        children.add(child)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _stop(children)


def _preload(names: Sequence[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries about each other
        for name in names:
            __import__(name)


def _forget_ended(children: set[int]) -> None:
    children -= {child for child in children if os.waitpid(child, os.WNOHANG)[0]}


def _stop(children: set[int]) -> None:
    """Give the stages some seconds to record that they were interrupted."""
    for number, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, 1.0)):
        for child in children:
            os.kill(child, number)  # not waited for, so its number is still its own
        for _ in range(int(10 * seconds)):
            _forget_ended(children)
            if not children:
                return
            select.select([], [], [], 0.1)


# The child's side


def _become_stage(connection: socket.socket) -> None:
    """Turn this child into the stage that the connection asks for. Never returns."""
    code = 1
    try:
        os.setpgid(0, 0)
        connection.settimeout(REQUEST_SECONDS)
        connection.sendall(os.getpid().to_bytes(8, "big"))
        head, streams, _, _ = socket.recv_fds(connection, 8, len(STREAMS))
        request = json.loads(_read(connection, int.from_bytes(head, "big")))
        connection.settimeout(None)
        threading.Thread(target=_die_with, args=(connection,), daemon=True).start()
        _take_over(request, streams)
        code = run_stage(request["arguments"])
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for written in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                written.flush()
        with contextlib.suppress(OSError):
            connection.sendall(bytes([code & 255]))
        os._exit(code)


def _die_with(command: socket.socket) -> None:
    """The command never writes again, so its end is all that can be read: nobody wants the result."""
    with contextlib.suppress(OSError):
        command.recv(1)
    os.killpg(0, signal.SIGKILL)


def _take_over(request: dict[str, Any], streams: list[int]) -> None:
    for number in FORWARDED:
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


def run_stage(arguments: list[str]) -> int:
    """Run a stage's file in this process; give its exit code, its traceback where it crashes on standard error."""
    sys.argv = arguments
    keep_freed_memory()
    try:
        runpy.run_module(f"stages.{arguments[0]}", run_name="__main__", alter_sys=True)
    except SystemExit as exit_:
        if isinstance(exit_.code, str):
            print(exit_.code, file=sys.stderr)
        return exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    return 0


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2:])
