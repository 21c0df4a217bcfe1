"""`seeds`: a replicate is the same alone and beside others, and is killed, resumed, added and taken away by itself."""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stages.launching import places
from stages.settings.machine import Machine
from stages.tracking import run_folders
from tests.faults.scene import flip
from tests.launching.commands import new_workspace, plan, stage, start
from tests.pipeline.workspace import digests
from tests.waiting import SECONDS, wait_for

TRAIN, MODEL = ("train", "mini-castle-1shot"), Path("models/cells/mini-castle-1shot")
BEFORE = (("splits", "mini"), ("episodes", "mini"), ("pretrain", "mini-standard"))
plan_two_at_once = partial(plan, replicates=2)
pytestmark = [pytest.mark.timeout(1200), pytest.mark.usefixtures("forked_stages")]


def made(folder: Path, seed: int) -> dict[str, str]:
    """The content of all that was made for a seed."""
    return {name: digest for name, digest in digests(folder).items() if str(seed) in Path(name).parts}


def times(folder: Path) -> dict[Path, int]:
    tops = ("data", "episodes", "models", "results")
    return {file: file.stat().st_mtime_ns for top in tops for file in (folder / top).rglob("*") if file.is_file()}


def runs_of(folder: Path, name: str) -> list[tuple[int, str]]:
    """Seed and status of a stage's runs, the oldest first."""
    found = [run for run in run_folders(folder / "runs") if f"-{name}-" in run.name]
    return [
        (json.loads((run / "config.json").read_text())["seed"], json.loads((run / "run.json").read_text())["status"])
        for run in found
    ]


def processes(folder: Path) -> Iterator[tuple[int, list[str]]]:
    """The commands that run in a workspace: number and arguments."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve() == folder.resolve():
                yield int(process.name), (process / "cmdline").read_text().split("\0")[:-1]
        except OSError:  # it ended, or is not ours
            continue


def child(folder: Path, seed: int) -> int:
    """The process of one replicate."""
    (number,) = [number for number, words in processes(folder) if words[-2:] == ["--seed", str(seed)]]
    return number


def checkpoint(folder: Path, seed: int) -> list[Path]:
    return list((folder / "checkpoints" / f"mini-castle-1shot-{seed}").glob("step-*"))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seed 0 to the end of a training, and then seed 1 beside it; what was there is checked on the way."""
    folder = new_workspace(tmp_path_factory.mktemp("both"))
    plan_two_at_once(folder, seeds=[0])
    for arguments in (*BEFORE, TRAIN):
        stage(folder, *arguments)
    before, content = times(folder), made(folder, 0)
    plan_two_at_once(folder, seeds=[0, 1])
    for arguments in (*BEFORE, TRAIN):
        said, _ = stage(folder, *arguments)
        assert "seed 0 is there and whole" in said
    assert {file: moment for file, moment in times(folder).items() if file in before} == before
    assert made(folder, 0) == content
    return folder


@pytest.fixture
def workspace(both: Path, tmp_path: Path) -> Path:
    """The same for both seeds, with the method still to be trained."""
    shutil.copytree(both, tmp_path / "here", ignore=shutil.ignore_patterns("runs", "__pycache__"))
    shutil.rmtree(tmp_path / "here" / MODEL)
    return tmp_path / "here"


def test_an_added_seed_computes_only_itself_each_seed_a_run_of_its_own(both: Path) -> None:
    for name, _ in (*BEFORE, TRAIN):
        assert runs_of(both, name) == [(0, "COMPLETED"), (1, "COMPLETED")]
    origin = json.loads((both / MODEL / "1" / "origin.json").read_text())
    assert origin["seed"] == 1 and "seeds" not in json.dumps(origin)


def test_a_seed_is_the_same_alone_and_beside_another(both: Path, tmp_path: Path) -> None:
    alone = new_workspace(tmp_path)
    plan_two_at_once(alone, seeds=[1])
    for arguments in (*BEFORE, TRAIN):
        stage(alone, *arguments)
    assert made(alone, 1) == made(both, 1) != made(both, 0)
    assert len(made(alone, 1)) > 15


def test_several_seeds_run_side_by_side_and_say_who_speaks(workspace: Path, both: Path) -> None:
    _, said = stage(workspace, *TRAIN)
    assert all(line.startswith(("seed 0: ", "seed 1: ")) for line in said.splitlines())
    assert digests(workspace, ("models",)) == digests(both, ("models",))
    assert sorted(runs_of(workspace, "train")) == [(0, "COMPLETED"), (1, "COMPLETED")]


def test_a_killed_replicate_loses_nothing_of_the_other_and_goes_on_to_the_same_bytes(
    workspace: Path, tmp_path: Path
) -> None:
    plan_two_at_once(workspace, seeds=[0, 1], steps=60)
    left_alone = tmp_path / "left alone"
    shutil.copytree(workspace, left_alone)
    stage(left_alone, *TRAIN)

    running = start(workspace, "stages", *TRAIN)
    wait_for(lambda: checkpoint(workspace, 1))
    os.kill(child(workspace, 1), signal.SIGKILL)
    _, said = running.communicate(timeout=SECONDS)
    assert running.returncode == 128 + signal.SIGKILL
    assert "seed 1: ended with exit code 137; the same command goes on with it" in said
    assert checkpoint(workspace, 1) and not (workspace / MODEL / "1").exists()
    before = times(workspace)
    assert any(file.is_relative_to(workspace / MODEL / "0") for file in before)

    stage(workspace, *TRAIN)
    assert {file: moment for file, moment in times(workspace).items() if file in before} == before
    assert digests(workspace, ("models",)) == digests(left_alone, ("models",))
    assert [status for seed, status in runs_of(workspace, "train") if seed == 1] == ["INTERRUPTED", "COMPLETED"]


def test_a_signal_reaches_every_replicate(workspace: Path) -> None:
    plan_two_at_once(workspace, seeds=[0, 1], steps=100_000)
    running = start(workspace, "stages", *TRAIN)
    wait_for(lambda: checkpoint(workspace, 0) and checkpoint(workspace, 1))
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=SECONDS)
    assert running.returncode == 128 + signal.SIGTERM
    assert sorted(runs_of(workspace, "train")) == [(0, "INTERRUPTED"), (1, "INTERRUPTED")]
    assert not list(processes(workspace))


def test_no_replicate_outlives_the_command(workspace: Path) -> None:
    plan_two_at_once(workspace, seeds=[0, 1], steps=100_000)
    running = start(workspace, "stages", *TRAIN)
    wait_for(lambda: checkpoint(workspace, 0) and checkpoint(workspace, 1))
    running.kill()
    running.communicate(timeout=SECONDS)
    wait_for(lambda: not list(processes(workspace)))


def test_a_seed_taken_from_the_list_loses_its_folder_and_damage_is_made_again(both: Path, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    shutil.copytree(both, folder, ignore=shutil.ignore_patterns("__pycache__"))
    plan_two_at_once(folder, seeds=[0])
    (folder / MODEL / ".1.abcd.partial").mkdir()
    (folder / MODEL / "model.json").write_text("of before there were seeds")
    flip(folder / MODEL / "0" / "model.safetensors")
    stage(folder, *TRAIN)
    assert [each.name for each in (folder / MODEL).iterdir()] == ["0"]
    assert made(folder, 0) == made(both, 0)


def test_a_replicate_from_other_inputs_is_made_again(both: Path, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    shutil.copytree(both, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(folder / "data" / "mini" / "0")
    shutil.copytree(folder / "data" / "mini" / "1", folder / "data" / "mini" / "0")
    assert "seed 1 is there" in stage(folder, "episodes", "mini")[0]
    assert made(folder, 0) != made(both, 0) and made(folder, 1) == made(both, 1)


MACHINE: dict[str, Any] = {"memory_mb": 1, "workers": 0, "checkpoint_every": 1}


@pytest.mark.parametrize(
    ("machine", "gpus", "expected"),
    [
        ({"device": "cpu"}, "0,1", [None] * 4),
        ({"device": "cpu", "processes": 4}, "", [None]),
        ({"device": "auto"}, "", [None] * 4),
        ({"device": "auto", "replicates": 3}, "", [None] * 3),
        ({"device": "auto"}, "0,3", ["0", "3"]),
        ({"device": "cuda", "replicates": 3}, "0,3", ["0", "3", "0"]),
        ({"device": "cuda", "processes": 2}, "0,1,2,3,4", ["0,1", "2,3"]),
        ({"device": "cuda", "processes": 4}, "0,1", ["0,1"]),
        ({"device": "cuda", "nodes": 2}, "0,1", [None]),
    ],
)
def test_replicates_share_out_cores_and_gpus(
    machine: dict[str, Any], gpus: str, expected: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(places.GPUS, gpus)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    found = places.places_for(Machine(**MACHINE, **machine), threads=2)
    assert [place.get(places.GPUS) for place in found] == expected
