"""`machine.processes`: a training stage in two gloo ranks gives, records and survives what it does in one process."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
import yaml
from safetensors.torch import load_file
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, get_error_handler

from repro.errors import BadInput
from stages._params import Machine
from stages._processes import explained
from tests.pipeline.small_params import small_params

ROOT = Path(__file__).resolve().parents[2]
PRETRAIN = ("pretrain", "mini-linear", "--dataset", "mini", "--classifier", "linear")
TRAIN = ("train", "mini-castle-1shot", "--dataset", "mini", "--method", "castle", "--shot", "1")
TRAIN += ("--pretrained", "mini-linear")
PRETRAINED, MODEL = "models/pretrained/mini-linear", "models/cells/mini-castle-1shot"
SECONDS = 400.0  # for anything to happen; a loaded machine is slow
pytestmark = pytest.mark.timeout(1200)


def start(folder: Path, *command: str) -> subprocess.Popen[str]:
    """Start a command in the workspace; its runs are recorded there."""
    environment = os.environ | {"DVC_ROOT": str(folder), "OMP_NUM_THREADS": "1"}
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-m", *command], cwd=folder, env=environment, **options)


def stage(folder: Path, *arguments: str, code: int = 0) -> str:
    """Run a stage to its end and give what it wrote to standard error."""
    process = start(folder, "stages", *arguments)
    out, error = process.communicate(timeout=SECONDS)
    assert process.returncode == code, f"{out}\n{error}"
    return error


def configure(folder: Path, *, steps: int = 4, **machine: Any) -> None:
    params = small_params()
    params["machine"] |= machine
    params["methods"]["castle"]["training"]["steps"] = steps
    (folder / "params.yaml").write_text(yaml.safe_dump(params))


def copied(source: Path, target: Path) -> Path:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("runs", "__pycache__"))
    return target


def until(condition: Callable[[], Any]) -> Any:
    """Wait for something and give it."""
    deadline = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def ranks_of(folder: Path) -> dict[str, int]:
    """The live ranks of a stage in this workspace, by number."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve() == folder.resolve():
                words = dict(word.partition("=")[::2] for word in (process / "environ").read_text().split("\0"))
                found |= {words["RANK"]: int(process.name)} if "RANK" in words else {}
        except OSError:  # it ended, or is not ours
            continue
    return found


def recorded(folder: Path, name: str) -> list[dict[str, Any]]:
    """Entry, scalars and prints of every run of a stage, oldest first."""
    runs = []
    for run in sorted((folder / "runs").glob(f"*-{name}-mini-*")):
        entry = json.loads((run / "run.json").read_text())
        scalars = json.loads((run / "metrics.json").read_text()) if (run / "metrics.json").exists() else {}
        runs.append({"entry": entry, "scalars": scalars, "printed": (run / "cout.txt").read_text()})
    return runs


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data and both trainings, in one process."""
    folder = tmp_path_factory.mktemp("alone")
    for name in ("repro", "stages"):
        copied(ROOT / name, folder / name)
    shutil.copy(ROOT / "requirements.lock", folder)
    configure(folder)
    for arguments in (("splits", "mini"), ("episodes", "mini"), PRETRAIN, TRAIN):
        stage(folder, *arguments)
    return folder


@pytest.fixture
def workspace(alone: Path, tmp_path: Path) -> Path:
    """The same, with the method still to be trained."""
    folder = copied(alone, tmp_path / "here")
    shutil.rmtree(folder / MODEL)
    return folder


def assert_alike(one: Path, other: Path) -> None:
    weights, others = load_file(one / "model.safetensors"), load_file(other / "model.safetensors")
    assert weights.keys() == others.keys()
    for name, tensor in weights.items():
        torch.testing.assert_close(tensor, others[name], atol=1e-4, rtol=1e-3)
    curves = [pd.read_csv(folder / "curve.csv") for folder in (one, other)]
    pd.testing.assert_frame_equal(curves[0][["step", "loss", "lr"]], curves[1][["step", "loss", "lr"]], rtol=1e-3)


def test_two_ranks_train_what_one_process_does_and_only_one_records(alone: Path, workspace: Path) -> None:
    configure(workspace, processes=2)
    shutil.rmtree(workspace / PRETRAINED)
    stage(workspace, *PRETRAIN)
    assert_alike(alone / PRETRAINED, workspace / PRETRAINED)
    (run,), (single,) = recorded(workspace, "pretrain"), recorded(alone, "pretrain")
    assert run["entry"]["status"] == "COMPLETED"
    assert run["entry"]["artifacts"] == single["entry"]["artifacts"] == ["curve.csv"]
    assert run["entry"]["result"] == pytest.approx(single["entry"]["result"], abs=5)
    for name, series in single["scalars"].items():
        assert run["scalars"][name]["steps"] == series["steps"], name


def test_two_nodes_meet_at_the_endpoint(alone: Path, workspace: Path) -> None:
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    configure(workspace, nodes=2, endpoint=f"localhost:{port}")
    where = ("--nnodes=2", "--node-rank=1", "--nproc-per-node=1", "--master-addr=localhost", f"--master-port={port}")
    follower = start(workspace, "torch.distributed.run", *where, "-m", f"stages.{TRAIN[0]}", *TRAIN[1:])
    stage(workspace, *TRAIN)
    _, error = follower.communicate(timeout=SECONDS)
    assert follower.returncode == 0, error
    assert_alike(alone / MODEL, workspace / MODEL)
    assert [run["entry"]["status"] for run in recorded(workspace, "train")] == ["COMPLETED"]


def test_several_nodes_without_an_endpoint_are_refused(workspace: Path) -> None:
    configure(workspace, nodes=2)
    assert "set machine.endpoint to host:port" in stage(workspace, *TRAIN, code=2)


def test_a_failing_rank_fails_the_stage_with_its_traceback(workspace: Path) -> None:
    configure(workspace, processes=2)
    file = workspace / "repro/training/episodic.py"
    failing = "import os\nif os.environ.get('RANK') == '1':\n    raise OSError('on purpose')\n"
    file.write_text(f"{file.read_text()}\n{failing}")
    error = stage(workspace, *TRAIN, code=1)
    assert "rank 1 of 2 failed" in error and "OSError: on purpose" in error
    (run,) = recorded(workspace, "train")
    assert run["entry"]["status"] == "FAILED"
    assert "OSError: on purpose" in "".join(run["entry"]["fail_trace"])
    assert not ranks_of(workspace)


def test_bad_input_of_a_rank_is_that_of_the_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    get_error_handler().record_exception(BadInput("so: and so"))
    bad = ProcessFailure(0, 1, 2, str(tmp_path / "error.json"))
    lost = ProcessFailure(1, 2, -6, "")
    machine = Machine(device="cpu", memory_mb=1, workers=0, checkpoint_every=1, processes=2)
    assert str(explained(ChildFailedError("train", {1: lost, 0: bad}), machine, tmp_path)) == "so: and so"
    assert "rank 1 of 2 failed: Signal 6" in str(explained(ChildFailedError("train", {1: lost}), machine, tmp_path))


def test_whatever_is_killed_no_rank_stays_and_the_next_run_resumes(workspace: Path) -> None:
    configure(workspace, steps=100_000, processes=2)
    checkpoints = workspace / "checkpoints/mini-castle-1shot"

    def advanced(*, after: str) -> str:
        """The newest checkpoint, once there is one after this one."""
        return until(lambda: max((one.name for one in checkpoints.glob("step-*") if one.name > after), default=""))

    launcher = start(workspace, "stages", *TRAIN)
    reached = advanced(after="")
    launcher.kill()
    launcher.communicate(timeout=SECONDS)
    until(lambda: not ranks_of(workspace))

    launcher = start(workspace, "stages", *TRAIN)
    reached = advanced(after=advanced(after=reached))
    os.kill(ranks_of(workspace)["1"], signal.SIGKILL)
    _, error = launcher.communicate(timeout=SECONDS)
    assert launcher.returncode == 1 and "rank 1 of 2 failed: Signal 9 (SIGKILL)" in error
    assert not ranks_of(workspace)

    launcher = start(workspace, "stages", *TRAIN)
    advanced(after=advanced(after=reached))
    launcher.send_signal(signal.SIGTERM)
    launcher.communicate(timeout=SECONDS)
    assert launcher.returncode == 128 + signal.SIGTERM
    assert not ranks_of(workspace)

    resumed, stopped = recorded(workspace, "train")
    assert len(resumed["entry"]["meta"]["attempts"]) == 2
    assert (resumed["entry"]["status"], stopped["entry"]["status"]) == ("FAILED", "INTERRUPTED")
    for run in (resumed, stopped):
        assert "resuming from checkpoints/mini-castle-1shot/step-" in run["printed"]
        assert run["scalars"]["loss"]["steps"] == sorted(set(run["scalars"]["loss"]["steps"]))
