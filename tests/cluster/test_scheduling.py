"""Scheduling small pipelines: the outcome of a serial `dvc repro`, whatever happens to stages, workers and drivers."""

import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.toy import call, driver, environment, make, serial
from tests.waiting import wait_for

pytestmark = pytest.mark.timeout(120)
RAY, HERE = "tools/cluster", "tools/repro"


@pytest.fixture(params=[RAY, HERE])
def tool(request: pytest.FixtureRequest) -> str:
    """The name under which stages are run."""
    return str(request.param)


@pytest.fixture
def drive(tool: str, request: pytest.FixtureRequest) -> Callable[..., list[str]]:
    """The command that does so, with more options."""
    options = ["--here"] if tool == HERE else ["--address", str(request.getfixturevalue("ray_address"))]
    return lambda *more: driver(*options, *more)


def assert_as_serial(folder: Path) -> None:
    """dvc.lock and everything made are those of a serial run."""
    copy = serial(folder)
    names = re.findall(r"path: (\S+)", (copy / "dvc.lock").read_text())
    for name in ["dvc.lock", *names]:
        assert (folder / name).read_bytes() == (copy / name).read_bytes(), name
    assert not (folder / ".cluster" / "before.json").exists()


def test_the_outcome_is_that_of_a_serial_run_and_a_second_call_runs_nothing(
    tmp_path: Path, drive: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    folder = make(tmp_path / "toy", "diamond")
    said = call(folder, *drive("--through", "env WRAPPED=1"))
    assert said.endswith("5 ran, 0 unchanged\n")
    assert_as_serial(folder)
    assert (folder / "top.txt").read_text() == "threads= top\n"
    assert (folder / ".cluster/logs/leaf@b.log").read_text() == "making b\n"
    assert call(folder, *driver("--address", "nowhere:1")) == "0 ran, 5 unchanged\n"  # not even Ray is needed

    before = (folder / "dvc.lock").read_bytes()
    (folder / "leaf-b").unlink()
    assert "would run leaf@b" in (said := call(folder, *driver("--dry-run"))), said
    assert call(folder, *drive()).endswith("0 ran, 1 restored, 4 unchanged\n")
    assert (folder / "dvc.lock").read_bytes() == before


def test_a_failing_stage_stops_only_what_depends_on_it(tmp_path: Path, drive: Callable[..., list[str]]) -> None:
    folder = make(tmp_path / "toy", "failing")
    said = call(folder, *drive(), code=1)
    assert said.endswith("2 ran, 0 unchanged, 1 failed, 1 not reached\n")
    assert "failed: broken: exit code 1\nlog: .cluster/logs/broken.log\n    1\n    the reason\n" in said
    (folder / "repaired").touch()
    assert call(folder, *drive()).endswith("2 ran, 2 unchanged\n")
    assert_as_serial(folder)


def test_a_killed_worker_takes_its_stage_along_and_is_replaced(tmp_path: Path, ray_address: str) -> None:
    folder = make(tmp_path / "toy", "killing")
    said = call(folder, *driver("--address", ray_address, "--retries", "1"), code=1)
    assert said.endswith("1 ran, 0 unchanged, 1 failed\n")
    assert "failed: always: its worker was lost 2 times (WorkerCrashedError" in said
    assert (folder / "journal-once").read_text() == "began began "
    assert (folder / "journal-always").read_text() == "began began "
    assert (folder / "once").read_text() == "whole"


def test_an_interrupted_call_leaves_nothing_half_done_and_others_out(
    tmp_path: Path, tool: str, drive: Callable[..., list[str]]
) -> None:
    folder = make(tmp_path / "toy", "waiting")
    first = subprocess.Popen(drive(), cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        wait_for((folder / "waiting.pid").exists)
        said = call(folder, *drive(), code=2)
        assert re.fullmatch(rf"error: this workspace is held by {tool}, process {first.pid} on .*\n", said)
        assert f"{tool}, running slow" in call(folder, "dvc", "repro", code=255)
    finally:
        first.send_signal(signal.SIGINT)
        said, _ = first.communicate(timeout=60)
    assert first.returncode == 130
    assert "1 ran, 0 unchanged, 1 interrupted\n" in said
    with pytest.raises(ProcessLookupError):
        os.kill(int((folder / "waiting.pid").read_text()), 0)
    lock = (folder / "dvc.lock").read_text()
    assert "quick:" in lock and "slow:" not in lock

    (folder / "go").touch()
    assert call(folder, *drive()).endswith("1 ran, 1 unchanged\n")
    assert_as_serial(folder)


def test_a_killed_call_takes_its_stages_along(tmp_path: Path) -> None:
    folder = make(tmp_path / "toy", "waiting")
    first = subprocess.Popen(driver("--here"), cwd=folder, env=environment(), stdout=subprocess.DEVNULL)
    wait_for((folder / "waiting.pid").exists)
    first.kill()
    first.wait()
    number = int((folder / "waiting.pid").read_text())
    wait_for(lambda: not Path(f"/proc/{number}").exists())
    (folder / "go").touch()
    call(folder, *driver("--here"))
    assert_as_serial(folder)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["nothing"], "Stage 'nothing' not found"),
        (["--address", "ray://somewhere:10001"], "is a remote client's address"),
        (["--address", "127.0.0.1:9"], "nothing answers at 127.0.0.1:9"),
        (["--local", "0"], "'0' is no number from 1"),
    ],
)
def test_wrong_input_is_answered_in_one_sentence(options: list[str], said: str, tmp_path: Path) -> None:
    folder = make(tmp_path / "toy", "failing")
    answer = call(folder, *driver(*options), code=2)
    assert said in answer.splitlines()[-1]
    assert "Traceback" not in answer
    assert not (folder / "dvc.lock").exists()
