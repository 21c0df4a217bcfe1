"""`machine.processes`: a training stage in two gloo ranks gives, records and survives what it does in one process."""

import json
import os
import shutil
import signal
import socket
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

from repro.errors import BadInput
from stages.launching import ranks
from tests.launching.commands import new_workspace, plan, stage, start
from tests.waiting import SECONDS, wait_for

PRETRAIN, TRAIN = ("pretrain", "mini-standard"), ("train", "mini-castle-1shot")
PRETRAINED, MODEL = "models/pretrained/mini-standard/0", "models/cells/mini-castle-1shot/0"
pytestmark = [pytest.mark.timeout(1200), pytest.mark.usefixtures("forked_stages")]


def copied(source: Path, target: Path) -> Path:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("runs", "__pycache__"))
    return target


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
    plan(new_workspace(folder))
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
    plan(workspace, processes=2)
    shutil.rmtree(workspace / PRETRAINED)
    said = stage(workspace, *PRETRAIN)[1].splitlines()
    assert len(said) == len(set(said)), "more than one rank speaks"
    assert_alike(alone / PRETRAINED, workspace / PRETRAINED)
    (run,), (single,) = recorded(workspace, "pretrain"), recorded(alone, "pretrain")
    assert run["entry"]["status"] == "COMPLETED"
    assert run["entry"]["artifacts"] == single["entry"]["artifacts"] == ["curve.csv"]
    found, expected = (each["entry"]["result"]["val_prototype_accuracy"] for each in (run, single))
    assert found == pytest.approx(expected, abs=5)
    for name, series in single["scalars"].items():
        assert run["scalars"][name]["steps"] == series["steps"], name


def test_two_nodes_meet_at_the_endpoint(alone: Path, workspace: Path) -> None:
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    plan(workspace, nodes=2, endpoint=f"localhost:{port}")
    where = ("--nnodes=2", "--node-rank=1", "--nproc-per-node=1", "--master-addr=localhost", f"--master-port={port}")
    follower = start(workspace, "torch.distributed.run", *where, "-m", "stages", *TRAIN)
    stage(workspace, *TRAIN)
    _, error = follower.communicate(timeout=SECONDS)
    assert follower.returncode == 0, error
    assert_alike(alone / MODEL, workspace / MODEL)
    assert [run["entry"]["status"] for run in recorded(workspace, "train")] == ["COMPLETED"]


def test_several_nodes_without_an_endpoint_are_refused(workspace: Path) -> None:
    plan(workspace, nodes=2)
    assert "set machine.endpoint to host:port" in stage(workspace, *TRAIN, code=2)[1]


def test_a_failing_rank_fails_the_stage_with_its_traceback(workspace: Path) -> None:
    plan(workspace, processes=2)
    file = workspace / "repro/training/episodic.py"
    failing = "import os\nif os.environ.get('RANK') == '1':\n    raise OSError('on purpose')\n"
    file.write_text(f"{file.read_text()}\n{failing}")
    _, error = stage(workspace, *TRAIN, code=1)
    assert (
        "error: of 2 ranks failed " in error and "rank 1 with exit code 1" in error and "OSError: on purpose" in error
    )
    assert all(run["entry"]["status"] in ("FAILED", "INTERRUPTED") for run in recorded(workspace, "train"))
    assert not ranks_of(workspace)


def test_bad_input_is_said_once_for_all_ranks(workspace: Path) -> None:
    plan(workspace, processes=2)
    (workspace / PRETRAINED / "model.safetensors").write_bytes(b"")
    _, error = stage(workspace, *TRAIN, code=2)
    assert error.count("\n") == 1 and "model.safetensors: content is" in error


def test_of_several_failures_a_bad_input_is_said_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    ranks.leave_to_launcher(BadInput("so: and so"))
    bad, lost = ProcessFailure(0, 1, 2, str(tmp_path / "error.json")), ProcessFailure(1, 2, -6, "")
    assert ranks.explain(ChildFailedError("train", {1: lost, 0: bad}), 2) == 2
    assert capsys.readouterr().err == "error: so: and so\n"
    assert ranks.explain(ChildFailedError("train", {1: lost}), 2) == 1
    assert capsys.readouterr().err == "error: of 2 ranks failed rank 1 with exit code -6\n"


def test_whatever_is_killed_no_rank_stays_and_the_next_run_resumes(workspace: Path) -> None:
    plan(workspace, steps=100_000, processes=2)
    checkpoints = workspace / "checkpoints/mini-castle-1shot-0"

    def advanced(*, after: str) -> str:
        """The newest checkpoint, once there is one after this one."""
        return wait_for(lambda: max((one.name for one in checkpoints.glob("step-*") if one.name > after), default=""))

    launcher = start(workspace, "stages", *TRAIN)
    reached = advanced(after="")
    launcher.kill()
    launcher.communicate(timeout=SECONDS)
    wait_for(lambda: not ranks_of(workspace))

    launcher = start(workspace, "stages", *TRAIN)
    reached = advanced(after=advanced(after=reached))
    os.kill(ranks_of(workspace)["1"], signal.SIGKILL)
    _, error = launcher.communicate(timeout=SECONDS)
    assert launcher.returncode == 1 and "rank 1 with exit code -9" in error
    assert not ranks_of(workspace)

    launcher = start(workspace, "stages", *TRAIN)
    advanced(after=advanced(after=reached))
    launcher.send_signal(signal.SIGTERM)
    launcher.communicate(timeout=SECONDS)
    assert launcher.returncode == 128 + signal.SIGTERM
    assert not ranks_of(workspace)

    killed, lost, stopped = recorded(workspace, "train")
    assert killed["entry"]["status"] == stopped["entry"]["status"] == "INTERRUPTED"
    assert lost["entry"]["status"] in ("FAILED", "INTERRUPTED")
    for run in (lost, stopped):
        assert "resuming from checkpoints/mini-castle-1shot-0/step-" in run["printed"]
        steps = run["scalars"]["loss"]["steps"]  # the whole curve, also of before the checkpoint
        assert steps == list(range(1, len(steps) + 1))
