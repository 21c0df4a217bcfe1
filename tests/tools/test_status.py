"""tools/status: what runs, how far it is and when it ends; runs in trouble are named; nothing is written."""

import json
import math
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from repro import paths
from repro.errors import BadInput
from stages.origins import expected_step
from stages.tracking import record
from stages.tracking.files import append_scalars, write_json
from tests.paths import ROOT
from tools.watching.pipeline import Status, read_status
from tools.watching.showing import headline, plain, shown, sparkline

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
CELL = "mini-castle-1shot"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One dataset for two seeds, and one cell to train for the first of them."""
    monkeypatch.chdir(tmp_path)
    plan("splits", "mini", seeds=[0, 1], dataset="mini")
    plan("train", CELL, seeds=[0], dataset="mini", pretrained="mini-standard")
    return tmp_path


def plan(stage: str, name: str, **values: Any) -> None:
    file = paths.settings(stage, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"code": "0" * 64, **values}))


def run(stage: str, cell: str, *, losses: dict[int, float] | None = None, pace: float = 2.0, **entry: Any) -> Path:
    """A run of 100 steps that began an hour ago, its steps `pace` seconds apart, the last one now."""
    folder = Path("runs") / f"20261117-110000-000-{stage}-{cell}-abcdef"
    folder.mkdir(parents=True)
    began = NOW - timedelta(hours=1)
    base = {
        "status": "RUNNING",
        "start_time": began,
        "heartbeat": NOW - timedelta(seconds=4),
        "host": {"hostname": "gpu1"},
    }
    write_json(folder / "run.json", base | entry)
    write_json(folder / "config.json", {"training": {"steps": 100}} if stage == "train" else {})
    last = max(losses or {}, default=0)
    for step, loss in (losses or {}).items():
        at = (NOW - timedelta(seconds=pace * (last - step))).replace(tzinfo=None).isoformat()
        append_scalars(
            folder, [("loss", step, loss, at), *([("val_hm", step, 30.0 + step, at)] if step % 5 == 0 else [])]
        )
    return folder


def training(status: Status) -> Any:
    (part,) = [part for part in status.parts if part.stage == "train"]
    return part


def test_a_training_is_shown_with_its_curves_and_the_time_its_own_steps_say(workspace: Path) -> None:
    run("train", f"{CELL}-seed0", losses={step: 5 / step for step in range(1, 41)})
    status = read_status(Path("runs"), NOW)
    part = training(status)
    assert (part.state, part.problem, part.run.step, part.run.steps) == ("running", "", 40, 100)
    assert part.left == pytest.approx(120)
    console = Console(width=200, file=StringIO())
    console.print(shown(status))
    page = console.file.getvalue()  # type: ignore[attr-defined]
    assert "40/100" in page and "2:00 min" in page and "gpu1" in page and "4.0 s ago" in page
    assert "█" in page and "70.00" in page  # curves, and the last validation
    assert "3 parts: 1 running, 2 waiting" in page and "GB of disk free" in page


@pytest.mark.parametrize(
    ("entry", "losses", "said"),
    [
        ({"heartbeat": NOW - timedelta(minutes=3)}, {1: 1.0, 2: 1.0}, "no heartbeat for 3:00 min"),
        ({}, {1: 1.0, 2: math.nan, 3: math.nan}, "its loss is not a number since step 2; lower its learning rate"),
        ({}, {1: math.inf}, "not a number since step 1"),
        ({"status": "FAILED", "fail_trace": ["Traceback\n", "ValueError: boom\n"]}, None, "failed: ValueError: boom"),
        ({"status": "INTERRUPTED"}, None, "interrupted; the same command goes on with it"),
    ],
)
def test_a_run_that_is_in_trouble_is_named(
    workspace: Path, entry: dict[str, Any], losses: dict[int, float] | None, said: str
) -> None:
    run("train", f"{CELL}-seed0", losses=losses, **entry)
    (part,) = read_status(Path("runs"), NOW).problems
    assert part.title == f"train {CELL}, seed 0" and said in part.problem


def test_a_training_from_random_weights_has_more_steps_than_its_settings_say(workspace: Path) -> None:
    run("train", f"{CELL}-seed0", losses={step: 1.0 for step in range(1, 121)})
    part = training(read_status(Path("runs"), NOW))
    assert (part.run.step, part.run.steps, part.left) == (120, None, None)


def test_a_run_that_beats_but_makes_no_step_is_named_unless_its_steps_are_that_long(workspace: Path) -> None:
    folder = run("train", f"{CELL}-seed0", losses=dict.fromkeys(range(1, 5), 1.0))
    later = NOW + timedelta(minutes=10)
    entry = json.loads((folder / "run.json").read_text())
    write_json(folder / "run.json", entry | {"heartbeat": later})
    assert "no step for 10:00 min, though it sends heartbeats" in training(read_status(Path("runs"), later)).problem
    (folder / "metrics.jsonl").unlink()
    for step in range(1, 5):
        append_scalars(folder, [("loss", step, 1.0, (NOW - timedelta(minutes=3 * (4 - step))).isoformat())])
    assert not training(read_status(Path("runs"), later)).problem


def test_a_run_without_steps_is_named_where_other_seeds_were_far_faster(workspace: Path) -> None:
    done("splits", "mini", seconds=600)
    run("splits", "mini-seed1", start_time=NOW - timedelta(hours=1))
    second = read_status(Path("runs"), NOW).parts[1]
    assert (second.state, second.problem) == ("running", ""), "six times as long may be the machine"
    done("splits", "mini", seconds=60)
    (second,) = read_status(Path("runs"), NOW).problems
    assert (second.seed, second.problem.split(";")[0]) == (1, "runs for 59:56 min, with other seeds for 1:00 min")


def done(stage: str, name: str, *, seconds: float) -> None:
    """Its first seed has ended."""
    values = json.loads(paths.settings(stage, name).read_text())
    folder = paths.dataset(name, 0)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / paths.ORIGIN).write_text(json.dumps(expected_step(stage, name, values, 0) | {"output": "x"}))
    ended = NOW - timedelta(hours=1) + timedelta(seconds=seconds)
    for old in Path("runs").glob(f"*-{stage}-{name}-seed0-*"):
        shutil.rmtree(old)
    run(stage, f"{name}-seed0", status="COMPLETED", stop_time=ended)


def test_before_anything_was_measured_no_time_is_told(workspace: Path) -> None:
    status = read_status(Path("runs"), NOW)
    assert "time left not known yet" in headline(status)
    assert (plain(status)["left_seconds"], plain(status)["unmeasured"]) == (None, 3)


def test_what_is_done_is_told_by_its_origin_and_gives_the_time_of_what_is_like_it(workspace: Path) -> None:
    done("splits", "mini", seconds=600)
    first, second, third = read_status(Path("runs"), NOW).parts
    assert (first.state, second.state, third.state) == ("done", "waiting", "waiting")
    assert (first.left, second.left, third.left) == (0, 600, None)
    assert "at least 10:00 min left, 1 at a time; of train nothing" in headline(read_status(Path("runs"), NOW))
    plan("splits", "mini", seeds=[0, 1], dataset="mini", size=32)
    assert read_status(Path("runs"), NOW).parts[0].state == "waiting"


def test_a_real_run_is_seen_from_outside_and_nothing_is_written(workspace: Path) -> None:
    def look(_settings: dict[str, Any], _log: Any) -> None:
        before = {file: file.stat().st_mtime_ns for file in workspace.rglob("*")}
        part = training(read_status(Path("runs")))
        assert (part.state, part.problem) == ("running", "")
        assert set(workspace.rglob("*")) == set(before)

    record(look, {"training": {"steps": 10}}, stage="train", cell=f"{CELL}-seed0", runs=Path("runs"))
    assert training(read_status(Path("runs"))).state == "waiting"  # it has left no output


def test_the_values_for_programs_are_json_without_nan(workspace: Path) -> None:
    run("train", f"{CELL}-seed0", losses={1: math.nan})
    told = json.loads(json.dumps(plain(read_status(Path("runs"), NOW)), allow_nan=False))
    (part,) = [part for part in told["parts"] if part["stage"] == "train"]
    assert part["run"]["loss"] == {"steps": [1], "values": [None]} and told["counts"] == {"running": 1, "waiting": 2}


def test_a_half_written_run_and_an_empty_workspace_are_no_crash(workspace: Path, tmp_path: Path) -> None:
    run("train", f"{CELL}-seed0").joinpath("run.json").write_text("{")
    assert training(read_status(Path("runs"), NOW)).state == "waiting"
    for file in paths.SETTINGS.rglob("*.json"):
        file.unlink()
    with pytest.raises(BadInput, match="nothing is planned yet, expected a file per stage; start tools/repro first"):
        read_status(Path("runs"), NOW)


@pytest.mark.parametrize("lock", ["[]", "{", "stages: 3", "stages: {paper: 3}", "stages: {paper: {deps: [1]}}"])
def test_a_lock_that_is_none_is_named(lock: str, workspace: Path) -> None:
    plan("paper", "all", seeds=[0])
    assert not read_status(Path("runs"), NOW).problems
    (workspace / "dvc.lock").write_text(lock)
    (part,) = read_status(Path("runs"), NOW).problems
    assert (part.stage, part.state) == ("paper", "failed")
    assert part.problem.startswith("dvc.lock: not what DVC writes (") and "`git checkout dvc.lock`" in part.problem


def test_settings_that_nest_too_deep_are_named(workspace: Path) -> None:
    paths.settings("train", CELL).write_text("[" * 100_000)
    with pytest.raises(BadInput, match=f"settings/train/{CELL}.json: not what `plan` writes"):
        read_status(Path("runs"), NOW)


def test_torch_is_not_loaded_to_look(workspace: Path) -> None:
    program = "import sys, tools.watching.showing; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize(
    ("values", "bars"), [([1.0, 2.0, 3.0], "▁▄█"), ([2.0, 2.0], "▁▁"), ([1.0, math.nan], "▁×"), ([], "")]
)
def test_a_sparkline_spans_its_values(values: list[float], bars: str) -> None:
    assert sparkline(values) == bars.replace("▄", sparkline([1.0, 2.0, 3.0])[1])
    assert len(sparkline([*range(1000)], 24)) <= 24
