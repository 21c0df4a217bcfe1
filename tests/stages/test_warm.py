"""The warm process: a stage run through it behaves as if it had been started by itself."""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.counting import Count

ROOT = Path(__file__).resolve().parents[2]

PROBE = """
import os, sys, time
print(f"probe {sys.argv[1:]} {os.getcwd()} {os.environ['MARK']} {sys.stdin.read() if sys.argv[1] == 'read' else ''}")
sys.stdout.flush()
if sys.argv[1] == "sleep":
    open("pid", "w").write(str(os.getpid()))
    time.sleep(60)
if sys.argv[1] == "fail":
    raise RuntimeError("on purpose")
sys.exit(int(sys.argv[2]))
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that looks like the repository, with a stage of its own and a private warm process."""
    (tmp_path / "stages").mkdir()
    for name in ("__init__.py", "__main__.py", "_warm.py"):
        source = (
            (ROOT / "stages" / name).read_text().replace('"torch", "timm", "sacred", "pandas", "pyarrow.parquet", ', "")
        )
        (tmp_path / "stages" / name).write_text(source.replace("IDLE_SECONDS = 30.0", "IDLE_SECONDS = 2.0"))
    (tmp_path / "stages" / "probe.py").write_text(PROBE)
    (tmp_path / "requirements.lock").write_text(str(tmp_path))
    sockets = tempfile.mkdtemp(prefix="warm")  # not below tmp_path: a socket's path must stay short
    monkeypatch.setenv("TMPDIR", sockets)
    monkeypatch.setenv("MARK", "seen")
    monkeypatch.delenv("REPRO_WARM", raising=False)
    yield tmp_path
    subprocess.run(["pkill", "-f", f"_warm {sockets}"], check=False)
    shutil.rmtree(sockets)


def launch(folder: Path, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stages", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False, **options)


def start_sleeping(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """A launcher and the process of its stage, which sleeps."""
    command = [sys.executable, "-m", "stages", "probe", "sleep"]
    launcher = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    mark = folder / "pid"
    wait_until(lambda: mark.exists() and mark.read_text())
    return launcher, mark.read_text()


def warm_processes() -> list[int]:
    """The warm process and the stages forked from it."""
    found = subprocess.run(["pgrep", "-f", f"_warm {os.environ['TMPDIR']}"], capture_output=True, check=False)
    return [int(number) for number in found.stdout.split()]


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("code", [0, 3])
def test_arguments_folder_environment_streams_and_exit_code_pass_through(workspace: Path, code: int) -> None:
    done = launch(workspace, "probe", "read", str(code), input="typed")
    assert done.returncode == code
    assert done.stdout.strip() == f"probe ['read', '{code}'] {workspace} seen typed"


def test_an_exception_shows_its_traceback_and_exits_with_one(workspace: Path) -> None:
    done = launch(workspace, "probe", "fail")
    assert done.returncode == 1
    assert "RuntimeError: on purpose" in done.stderr


def test_edited_code_is_seen_by_the_next_run(workspace: Path) -> None:
    assert launch(workspace, "probe", "first", "0").stdout.startswith("probe ['first'")
    (workspace / "stages" / "probe.py").write_text("print('edited')")
    assert launch(workspace, "probe", "first", "0").stdout == "edited\n"


def test_an_unknown_stage_is_named_with_the_known_ones(workspace: Path) -> None:
    done = launch(workspace, "nothing")
    assert done.returncode == 2
    assert "{probe}" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_the_launcher_ends_the_stage(workspace: Path, number: signal.Signals) -> None:
    launcher, stage = start_sleeping(workspace)
    launcher.send_signal(number)
    launcher.communicate(timeout=20)
    assert launcher.returncode != 0
    wait_until(lambda: not Path(f"/proc/{stage}").exists())


def hand_over(request: bytes, stream: int) -> socket.socket:
    """Ask the warm process for something as its launcher does, with the same stream three times."""
    (place,) = Path(os.environ["TMPDIR"]).glob("castle-repro-*/*.sock")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(str(place))
    socket.send_fds(connection, [len(request).to_bytes(8, "big")], [stream] * 3)
    connection.sendall(request)
    return connection


def test_a_launcher_that_dies_before_it_knows_its_stage_ends_it(workspace: Path, faults: Count) -> None:
    faults.tried()
    launch(workspace, "probe", "x", "0")
    (warm,) = warm_processes()
    request = {"arguments": ["probe", "sleep"], "folder": str(workspace), "environment": dict(os.environ)}
    os.kill(warm, signal.SIGSTOP)  # so that the launcher is gone for sure when it is told of its stage
    with open(os.devnull, "r+") as stream:
        hand_over(json.dumps(request).encode(), stream.fileno()).close()
    os.kill(warm, signal.SIGCONT)
    assert launch(workspace, "probe", "x", "0").returncode == 0  # the door is served in order: the stage was forked
    wait_until(lambda: not warm_processes())  # it leaves when idle
    faults.survived()


def test_a_request_that_is_none_leaves_no_stream_open(workspace: Path, faults: Count) -> None:
    faults.tried()
    launcher, _ = start_sleeping(workspace)  # the warm process stays as long
    reading, writing = os.pipe()
    with open(reading, "rb") as ours, hand_over(b"no request", writing):
        os.close(writing)
        assert select.select([ours], [], [], 20)[0], "somebody still holds the other end"
        assert ours.read() == b""
    launcher.kill()
    launcher.communicate()
    faults.survived()


def test_the_warm_process_leaves_when_idle(workspace: Path) -> None:
    assert launch(workspace, "probe", "x", "0").returncode == 0
    assert warm_processes()
    wait_until(lambda: not warm_processes())


def test_the_socket_folder_is_closed_to_others(workspace: Path) -> None:
    launch(workspace, "probe", "x", "0")
    folder = Path(os.environ["TMPDIR"]) / f"castle-repro-{os.getuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)
    done = launch(workspace, "probe", "x", "0")
    assert "open to other users" in done.stderr
    assert done.returncode == 1
