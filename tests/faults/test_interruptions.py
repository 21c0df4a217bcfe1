"""Interrupts, two processes at once, and clocks that jump."""

import importlib
import json
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from repro.errors import BadInput
from repro.files import collect_signals, exclusive_folder, locks, whole_folder
from stages.tracking import experiment
from stages.tracking import runs as run_names
from stages.tracking.files import read_scalars
from tests.counting import Count
from tests.faults.scene import Scene
from tests.tracking import toy
from tests.tracking.conftest import only_run, read
from tests.waiting import wait_for


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_training_is_recorded_and_leaves_no_partial_file(
    number: signal.Signals, scene: Scene, faults: Count
) -> None:
    faults.tried()
    params = yaml.safe_load((scene.folder / "params.yaml").read_text())
    params["machine"]["checkpoint_every"] = 100
    (scene.folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    stage, settings = "train@mini-castle-1shot", scene.folder / "settings" / "train" / "mini-castle-1shot.json"
    planned = json.loads(settings.read_text())
    planned["training"]["steps"] = 1_000_000  # it will not end by itself
    settings.unlink()  # DVC's cache shares it, so it may not be written to
    settings.write_text(json.dumps(planned))
    scene.clear(stage)
    before = set((scene.folder / "runs").iterdir())
    running = scene.start(stage)
    checkpoints = scene.folder / "checkpoints" / "mini-castle-1shot-0"
    wait_for(lambda: list(checkpoints.glob("step-*")))
    running.signal(number)
    assert running.wait(300) == 128 + number
    assert "Traceback" not in running.said()
    (run,) = set((scene.folder / "runs").iterdir()) - before
    assert read(run)["status"] == "INTERRUPTED"
    assert len(read_scalars(run)["loss"]["steps"]) > 1
    kept = {name for name in scene.contents() if not name.startswith("checkpoints/")}
    model = "models/cells/mini-castle-1shot"
    assert kept == {name for name in scene.whole if name != model and not name.startswith(f"{model}/")}
    assert all((checkpoint / "SHA256SUMS").is_file() for checkpoint in checkpoints.glob("step-*"))
    assert not list(checkpoints.glob(".*.partial"))
    faults.survived()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("call", ["os.mkdir", "shutil.rmtree", "os.fsync"])
def test_a_signal_amid_the_swap_of_a_folder_leaves_nothing_half_done(
    number: signal.Signals, call: str, tmp_path: Path, monkeypatch, faults: Count
) -> None:
    faults.tried()
    module, name = call.split(".")
    real = getattr(importlib.import_module(module), name)

    def interrupted(*arguments, **options):
        signal.raise_signal(number)
        return real(*arguments, **options)

    def stop(_number, _frame):
        raise KeyboardInterrupt

    before = signal.signal(number, stop)
    try:
        write_words(tmp_path / "kept", "before")
        monkeypatch.setattr(f"repro.files.whole.{call}", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write_words(tmp_path / "kept", "after")
    finally:
        signal.signal(number, before)
    assert (tmp_path / "kept" / "words").read_text() in ("before", "after")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    faults.survived()


def test_a_signal_that_is_ignored_as_under_nohup_stops_nothing_that_waits() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with collect_signals() as received:
            signal.raise_signal(signal.SIGHUP)
        assert received == [] and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def write_words(folder: Path, words: str) -> None:
    with whole_folder(folder) as partial:
        (partial / "words").write_text(words)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("stage", ["splits@mini", "train@mini-castle-1shot", "evaluate@mini-castle-1shot"])
def test_two_processes_of_one_stage_leave_what_one_leaves(stage: str, scene: Scene, faults: Count) -> None:
    faults.tried()
    scene.clear(stage)
    both = [scene.start(stage), scene.start(stage)]
    codes = [running.wait() for running in both]
    assert 0 in codes
    for running, code in zip(both, codes, strict=True):
        assert code == 0 or (code == 2 and "is in use by another process of this stage; wait for it" in running.said())
    assert scene.contents() == scene.whole
    faults.survived()


def test_a_folder_that_was_made_anew_before_it_was_locked_is_not_held_twice(
    tmp_path: Path, monkeypatch, faults: Count
) -> None:
    faults.tried()
    folder, lock = tmp_path / "held", locks.try_to_lock

    def late(handle: int) -> bool:  # between its opening and its lock the holder ends and another one comes
        folder.rmdir()
        folder.mkdir()
        return lock(handle)

    monkeypatch.setattr(locks, "try_to_lock", late)
    with pytest.raises(BadInput, match="is in use by another process"), exclusive_folder(folder):
        pass
    assert folder.is_dir()
    faults.survived()


class Clock(datetime):
    """A wall clock that tests can set."""

    ahead = timedelta()

    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) + cls.ahead


@pytest.mark.parametrize("years", [-30, 30])
def test_a_clock_that_jumps_does_not_change_which_run_is_continued(
    years: int, tmp_path: Path, monkeypatch, faults: Count
) -> None:
    faults.tried()
    monkeypatch.setattr(run_names, "datetime", Clock)
    toy.record_toy(tmp_path, steps=2)
    monkeypatch.setattr(Clock, "ahead", timedelta(days=365 * years))
    interrupted = {"steps": 10, "trouble": "interrupt"}
    with pytest.raises(SystemExit):
        toy.record_toy(tmp_path, **interrupted)
    monkeypatch.setattr(Clock, "ahead", -Clock.ahead)
    with pytest.raises(SystemExit):
        toy.record_toy(tmp_path, **interrupted)
    first, second, third = sorted(tmp_path.glob("2*"))
    assert [read(run)["status"] for run in (first, second, third)] == ["COMPLETED", "INTERRUPTED", "INTERRUPTED"]
    assert read(third)["meta"]["continues"] == second.name
    faults.survived()


def test_a_clock_that_jumps_while_a_run_goes_on_stops_no_heartbeat(tmp_path: Path, monkeypatch, faults: Count) -> None:
    import sacred.run

    faults.tried()
    offsets = iter(timedelta(days=days) for days in (0, -365, 365, -3650) for _ in range(3))

    class Jumping(datetime):
        @classmethod
        def utcnow(cls):
            return datetime.now(UTC).replace(tzinfo=None) + next(offsets, timedelta())

    monkeypatch.setattr(sacred.run.datetime, "datetime", Jumping)
    monkeypatch.setattr(experiment, "BEAT_SECONDS", 0.02)
    toy.record_toy(tmp_path, steps=20, pause=0.02)
    run = only_run(tmp_path)
    assert read(run)["status"] == "COMPLETED"
    assert read_scalars(run)["loss"]["steps"] == list(range(20))
    faults.survived()
