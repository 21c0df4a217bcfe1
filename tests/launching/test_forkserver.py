"""A stage forked from the server behaves as one started by itself, and no server can keep it from running."""

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stages.launching import forkserver
from tests.counting import Count
from tests.paths import ROOT
from tests.waiting import wait_for

PROBE = """
import os, sys, time
print(f"probe {sys.argv[1:]} {os.getcwd()} {os.environ['MARK']} {sys.stdin.read() if sys.argv[1] == 'read' else ''}")
sys.stdout.flush()
open("parent", "w").write(f"{os.getppid()} {sys.stderr.isatty()}")
if sys.argv[1] == "sleep":
    open("pid", "w").write(str(os.getpid()))
    time.sleep(60)
if sys.argv[1] == "fail":
    raise RuntimeError("on purpose")
sys.exit(int(sys.argv[2]))
"""
OWNER = """import sys
from stages.launching.forkserver import fork_server
with fork_server(["yaml"]) as environment:
    print(environment["REPRO_FORKSERVER"], flush=True)
    sys.stdin.read()
"""
PIPES: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
Process = subprocess.Popen[str]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like the repository, with a stage of its own."""
    (tmp_path / "stages").mkdir()
    for name in (
        "repro",
        "stages/__init__.py",
        "stages/__main__.py",
        "stages/launching",
        "stages/settings",
        "stages/tracking",
    ):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "stages" / "summary.py").write_text(PROBE)
    monkeypatch.setenv("MARK", "seen")
    monkeypatch.delenv(forkserver.ADDRESS, raising=False)
    return tmp_path


@pytest.fixture
def owner(monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    """A process that runs a server, as tools/repro does; stages find it."""
    with subprocess.Popen([sys.executable, "-c", OWNER], cwd=ROOT, **PIPES) as process:
        assert process.stdout
        address = process.stdout.readline().strip()
        wait_for(lambda: Path(address).exists())
        monkeypatch.setenv(forkserver.ADDRESS, address)
        yield process
        process.kill()


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "stages", *arguments]


def launch(folder: Path, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 120}
    return subprocess.run(command(*arguments), cwd=folder, input=typed, check=False, **options)


def start_sleeping(folder: Path) -> tuple[Process, int]:
    """A stage's command and its process, which sleeps."""
    started = subprocess.Popen(command("summary", "sleep"), cwd=folder, **PIPES)
    mark = folder / "pid"
    wait_for(lambda: mark.exists() and mark.read_text())
    return started, int(mark.read_text())


def parent_of_stage(folder: Path) -> int:
    """The process that the last stage was a child of: the server, or this one."""
    return int((folder / "parent").read_text().split()[0])


def gone(process: int) -> bool:
    return not Path(f"/proc/{process}").exists()


@pytest.mark.parametrize("served", [True, False])
def test_arguments_folder_environment_streams_and_exit_code_pass_through(
    workspace: Path, served: bool, request: pytest.FixtureRequest
) -> None:
    if served:
        request.getfixturevalue("owner")
    done = launch(workspace, "summary", "read", "3", typed="typed")
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.strip() == f"probe ['read', '3'] {workspace} seen typed"
    assert (parent_of_stage(workspace) == os.getpid()) is not served


def test_an_exception_shows_its_traceback_and_exits_with_one(workspace: Path, owner: Process) -> None:
    done = launch(workspace, "summary", "fail")
    assert done.returncode == 1
    assert "RuntimeError: on purpose" in done.stderr


def test_edited_code_is_seen_by_the_next_run(workspace: Path, owner: Process) -> None:
    assert launch(workspace, "summary", "first", "0").stdout.startswith("probe ['first'")
    (workspace / "stages" / "summary.py").write_text("print('edited')")
    assert launch(workspace, "summary", "first", "0").stdout == "edited\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("served", [True, False])
def test_closed_standard_streams_are_no_error(
    workspace: Path, served: bool, closed: str, request: pytest.FixtureRequest, faults: Count
) -> None:
    faults.tried()
    if served:
        request.getfixturevalue("owner")
    script = f'"$@" {closed}; echo $? > code'
    subprocess.run(["sh", "-c", script, "sh", *command("summary", "read", "3")], cwd=workspace, timeout=120, check=True)
    assert (workspace / "code").read_text() == "3\n"
    faults.survived()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_to_the_command_ends_the_stage(workspace: Path, owner: Process, number: signal.Signals) -> None:
    started, stage = start_sleeping(workspace)
    started.send_signal(number)
    started.communicate(timeout=120)
    assert started.returncode != 0
    wait_for(lambda: gone(stage))


def test_a_killed_stage_is_told_as_such(workspace: Path, owner: Process, faults: Count) -> None:
    faults.tried()
    started, stage = start_sleeping(workspace)
    os.kill(stage, signal.SIGKILL)
    assert "the stage's process was killed" in started.communicate(timeout=120)[1]
    assert started.returncode == forkserver.KILLED
    faults.survived()


@pytest.mark.parametrize("ending", ["kill", "terminate", "return"])
def test_server_and_stages_end_with_their_owner(workspace: Path, owner: Process, ending: str) -> None:
    started, stage = start_sleeping(workspace)
    server, folder = parent_of_stage(workspace), Path(os.environ[forkserver.ADDRESS]).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    assert owner.stdin
    {"kill": owner.kill, "terminate": owner.terminate, "return": owner.stdin.close}[ending]()
    started.communicate(timeout=120)
    assert started.returncode != 0
    wait_for(lambda: gone(stage) and gone(server) and not folder.exists())


# A server that cannot be used


def test_a_silent_client_blocks_nobody(workspace: Path, owner: Process, faults: Count) -> None:
    faults.tried()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.connect(os.environ[forkserver.ADDRESS])
        assert launch(workspace, "summary", "x", "3").returncode == 3
    assert parent_of_stage(workspace) != os.getpid()
    faults.survived()


def test_a_stopped_server_is_not_waited_for_and_runs_nothing_later(
    workspace: Path, owner: Process, monkeypatch: pytest.MonkeyPatch, faults: Count
) -> None:
    faults.tried()
    launch(workspace, "summary", "x", "0")
    server = parent_of_stage(workspace)
    monkeypatch.setattr(forkserver, "ANSWER_SECONDS", 0.2)
    monkeypatch.chdir(workspace)
    os.kill(server, signal.SIGSTOP)
    with pytest.raises(forkserver.NoAnswer, match="no answer within 0 s"):
        forkserver.hand_over(["summary", "sleep"])
    os.kill(server, signal.SIGCONT)
    assert launch(workspace, "summary", "y", "3").returncode == 3  # connections are served in order
    assert parent_of_stage(workspace) == server and not (workspace / "pid").exists()
    faults.survived()


@pytest.mark.parametrize("kind", ["missing", "file", "link", "deaf"])
def test_an_address_that_leads_to_no_server_is_not_used(
    kind: str, workspace: Path, owner: Process, monkeypatch: pytest.MonkeyPatch, faults: Count
) -> None:
    faults.tried()
    place = Path(os.environ[forkserver.ADDRESS]).with_name(kind)
    monkeypatch.setenv(forkserver.ADDRESS, str(place))
    if kind == "file":
        place.write_text("")
    elif kind == "link":  # another user could have put it there
        place.symlink_to(place.with_name("socket"))
    elif kind == "deaf":
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.bind(str(place))
    done = launch(workspace, "summary", "x", "3")
    assert (done.returncode, parent_of_stage(workspace)) == (3, os.getpid())
    assert done.stderr.count("\n") == 1 and "this stage runs without it" in done.stderr
    faults.survived()


def test_a_socket_of_another_user_is_not_used(monkeypatch: pytest.MonkeyPatch, owner: Process) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(forkserver.NoAnswer, match="no socket of yours"):
        forkserver.hand_over(["summary"])


def test_a_request_that_is_none_leaves_no_stream_open(owner: Process, faults: Count) -> None:
    faults.tried()
    reading, writing = os.pipe()
    with open(reading, "rb") as ours, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(os.environ[forkserver.ADDRESS])
        assert connection.recv(8)
        socket.send_fds(connection, [(10).to_bytes(8, "big")], [writing] * 3)
        os.close(writing)
        connection.sendall(b"no request")
        assert select.select([ours], [], [], 120)[0], "somebody still holds the other end"
        assert ours.read() == b""
    faults.survived()
