"""The warm process: a stage run through it behaves as if it had been started by itself."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

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
    launcher = subprocess.Popen(
        [sys.executable, "-m", "stages", "probe", "sleep"],
        cwd=workspace,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    mark = workspace / "pid"
    deadline = time.monotonic() + 30
    while not (mark.exists() and mark.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    launcher.send_signal(number)
    launcher.communicate(timeout=20)
    assert launcher.returncode != 0
    while Path(f"/proc/{mark.read_text()}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{mark.read_text()}").exists()


def test_the_warm_process_leaves_when_idle(workspace: Path) -> None:
    assert launch(workspace, "probe", "x", "0").returncode == 0
    command = ["pgrep", "-f", f"_warm {os.environ['TMPDIR']}"]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    deadline = time.monotonic() + 20
    while subprocess.run(command, check=False, capture_output=True).returncode == 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert subprocess.run(command, check=False, capture_output=True).returncode == 1


def test_the_socket_folder_is_closed_to_others(workspace: Path) -> None:
    launch(workspace, "probe", "x", "0")
    folder = Path(os.environ["TMPDIR"]) / f"castle-repro-{os.getuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)
    done = launch(workspace, "probe", "x", "0")
    assert "open to other users" in done.stderr
    assert done.returncode == 1
