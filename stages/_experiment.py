"""The only Sacred code: turns a stage's main function into a recorded run.

    ex = prepare(Experiment("evaluate"))  # in the stage's own file: Sacred records the caller as main file

    @ex.main
    def evaluate(cell: str, shot: int, _run: Run) -> dict[str, float]: ...

    if __name__ == "__main__":
        run(ex, config, stage="evaluate", cell="mini-castle-1shot")

A run is written to `runs/` (layout: `_tracking.py`) and nowhere else. With REPRO_MONGO_URL set, a thread copies the
folder to that server at each heartbeat (`_tracking_mongo.py`, the code of tools/sync), so a server that is down, slow
or dies can neither stop a run nor lose anything.
"""

import inspect
import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from datetime import datetime
from functools import partial
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, TextIO

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Sacred imports pkg_resources, which announces its own end
    import sacred.experiment
    from sacred import SETTINGS
    from sacred.dependencies import PackageDependency, Source, get_digest
    from sacred.observers import FileStorageObserver
    from sacred.randomness import set_global_seed
    from sacred.run import Run

from repro.errors import BadInput
from repro.files import disk_named, whole_file
from stages import _tracking_machine as machine
from stages._rank import is_rank, run_rank
from stages._tracking import (
    ROOT,
    append_scalars,
    bad_input_exits,
    create,
    fingerprint,
    hold,
    mark_resumption,
    read_json,
    read_scalars,
    resume,
    runs_folder,
    write_json,
    write_text,
)
from stages._tracking_capture import Capture, capturing

__all__ = ["Experiment", "Run", "bad_input_exits", "prepare", "run"]

BEAT_SECONDS = 10.0

# Gathered here for the whole repository and at the run's start; Sacred would ask git once per source file.
SETTINGS.DISCOVER_SOURCES = "none"
SETTINGS.DISCOVER_DEPENDENCIES = "none"
SETTINGS.HOST_INFO.INCLUDE_CPU_INFO = False
SETTINGS.HOST_INFO.INCLUDE_GPU_INFO = False
SETTINGS.CAPTURE_MODE = "no"  # `capturing` does it: Sacred's capture loses the last lines of a failed run
SETTINGS.CONFIG.READ_ONLY_CONFIG = False  # stages get plain dictionaries and lists
SETTINGS.CONFIG.ENFORCE_KEYS_MONGO_COMPATIBLE = False  # the copy to Mongo takes care of keys

# Sacred asks `inspect.stack` for its caller's globals, and that walks through every loaded module: 0.1 s with torch.
sacred.experiment.inspect = SimpleNamespace(  # type: ignore[assignment]
    stack=lambda: [(sys._getframe(1),), (sys._getframe(2),)]
)
# `partial` adds no Python frame, so Sacred still sees the stage's file as the caller.
Experiment = partial(sacred.Experiment, save_git_info=False)


def prepare(experiment: sacred.Experiment) -> sacred.Experiment:
    """Silence Sacred's own log lines; a stage's words are its own."""
    logger = logging.getLogger("sacred")
    logger.setLevel(logging.CRITICAL + 1)
    experiment.logger = logger  # type: ignore[assignment]  # Sacred declares it as None
    return experiment


def run(
    experiment: sacred.Experiment,
    config: dict[str, Any],
    *,
    stage: str,
    cell: str,
    runs: Path | None = None,
) -> Any:
    """Run the experiment's main function with `config` as its arguments, record it, and give what it returns.

    The newest run of this stage and cell is continued where it was killed or interrupted with the same configuration;
    else a new one begins. `_run._id` names it. `runs` is the folder of run folders, `runs/` of the repository unless
    given. The global seed is set to `config["seed"]`, or 0.

    BadInput ends the process with its sentence and exit code 2, an interrupt or SIGTERM with 130 or 143; any other
    exception is recorded and raised again. One of several ranks of a stage records nothing: its launcher does.
    """
    config = {"seed": 0, **deepcopy(config)}
    if is_rank():
        set_global_seed(config["seed"])
        return run_rank(inspect.unwrap(experiment.commands[experiment.default_command]), config)
    runs = runs or runs_folder()
    with ExitStack() as stack:
        stack.enter_context(bad_input_exits())
        with disk_named(runs):
            folder, lock = _take(runs, stage, cell, config)
        stack.enter_context(lock)
        stack.enter_context(_interrupts_exit())
        capture = stack.enter_context(capturing())
        stack.enter_context(_logging_to_stderr())
        observer = RunFolder(folder, capture, fingerprint(config))
        stack.enter_context(_mirrored(observer))
        return _run_observed(experiment, config, observer)


def _run_observed(experiment: sacred.Experiment, config: dict[str, Any], observer: "RunFolder") -> Any:
    _describe(experiment)
    experiment.configurations = []
    experiment.add_config(config)
    experiment.observers = [observer]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="sacred")  # datetime.utcnow
        current = experiment._create_run()
        current._id = observer.folder.name
        current.beat_interval = BEAT_SECONDS
        _await_last_beat(current)
        current()
    return current.result


def _await_last_beat(current: Run) -> None:
    """Wait for the last heartbeat however slow the disk is; Sacred waits two seconds, and its scalars would be lost."""
    stop = current._stop_heartbeat

    def stop_and_wait() -> None:
        stop()
        if current._heartbeat is not None:
            current._heartbeat.join()

    current._stop_heartbeat = stop_and_wait  # type: ignore[method-assign]


def _take(runs: Path, stage: str, cell: str, config: dict[str, Any]) -> tuple[Path, TextIO]:
    """The run's folder, held by this process: the one to continue, or a new one."""
    if (taken := resume(runs, stage, cell, fingerprint(config))) is not None:
        return taken
    folder = create(runs, stage, cell)
    while (lock := hold(folder)) is None:
        time.sleep(0.01)  # another start has it for a moment, to see whether it can go on with this run
    return folder, lock


def _describe(experiment: sacred.Experiment) -> None:
    """Give Sacred the sources, packages and commit of this repository as they are now."""
    commit, dirty = machine.commit(ROOT)
    main = experiment.mainfile
    main.repo, main.commit, main.is_dirty = f"git:/{ROOT}" if commit else None, commit, dirty
    imported = {Source(str(file), get_digest(file), None, None, None) for file in machine.sources(ROOT)}
    experiment.base_dir = str(ROOT)
    experiment.sources = {main} | imported  # equal by file name: the main file keeps the commit for all
    experiment.dependencies = {PackageDependency(name, version) for name, version in machine.packages().items()}


class RunFolder(FileStorageObserver):
    """Sacred's file observer with whole files, an appended journal of scalars, and runs that can be continued."""

    def __init__(self, folder: Path, capture: Capture, config_digest: str) -> None:
        super().__init__(folder.parent)
        self.folder = folder
        self.dir = str(folder)
        self.beaten: Callable[[], None] = lambda: None
        self._capture = capture
        self._digest = config_digest
        self._printed_before = ""
        self._unsaved: list[tuple[str, int, float, str]] = []
        self._lock = threading.RLock()  # heartbeats come from a thread of their own

    def _make_run_dir(self, _id: str) -> None:
        """The folder exists already: it was made, or found, before Sacred started."""

    def started_event(  # noqa: PLR0917 - Sacred's interface
        self,
        ex_info: dict[str, Any],
        command: str,
        host_info: dict[str, Any],
        start_time: datetime,
        config: dict[str, Any],
        meta_info: dict[str, Any],
        _id: str,
    ) -> str:
        """Begin the record, or go on with the one that is there."""
        attempt = {"start_time": start_time, "repositories": ex_info["repositories"]}
        with self._lock:
            before = read_json(self.folder / "run.json") if (self.folder / "run.json").exists() else None
            meta = {**meta_info, "fingerprint": self._digest, "attempts": [attempt]}
            if before:
                self._printed_before = self._read_printed()
                meta["attempts"] = [*before["meta"]["attempts"], attempt]
                mark_resumption(self.folder, start_time.isoformat())
            super().started_event(ex_info, command, machine.host(), start_time, config, meta, _id)
            if before:
                self.run_entry.update(start_time=before["start_time"], artifacts=before["artifacts"])
                self.save_json(self.run_entry, "run.json")
        self.beaten()
        return _id

    def heartbeat_event(self, info: dict[str, Any], captured_out: str, beat_time: datetime, result: Any) -> None:
        """Bring the record up to date."""
        with self._lock, self._tolerant():
            super().heartbeat_event(info, captured_out, beat_time, result)
        self.beaten()

    def log_metrics(self, metrics_by_name: dict[str, dict[str, list[Any]]], info: dict[str, Any]) -> None:
        """Append scalars to the journal; where that fails they wait in memory for the next heartbeat."""
        for name, series in metrics_by_name.items():
            rows = zip(series["steps"], series["values"], series["timestamps"], strict=True)
            self._unsaved += [(name, int(step), float(value), time.isoformat()) for step, value, time in rows]
        with self._lock, self._tolerant():
            self._save_scalars()

    def _save_scalars(self) -> None:
        append_scalars(self.folder, self._unsaved)
        self._unsaved = []

    @contextmanager
    def _tolerant(self) -> Iterator[None]:
        """Say that the disk refuses, and let the run go on: Sacred would drop an observer that raises."""
        try:
            yield
        except (OSError, BadInput) as error:
            logging.getLogger(__name__).warning("cannot write to %s now: %s", self.folder, error)

    def artifact_event(self, name: str, filename: str, metadata: Any = None, content_type: Any = None) -> None:
        """Copy a file into the record's own folder for them, where it cannot hide a file of the record."""
        with self._lock, self._tolerant():
            self._copy(Path(filename), self.folder / "artifacts" / name)
            if name not in self.run_entry["artifacts"]:
                self.run_entry["artifacts"].append(name)
            self.save_json(self.run_entry, "run.json")

    def completed_event(self, stop_time: datetime, result: Any) -> None:
        with self._lock, self._tolerant():
            self._finish()
            super().completed_event(stop_time, result)

    def interrupted_event(self, interrupt_time: datetime, status: str) -> None:
        with self._lock, self._tolerant():
            self._finish()
            super().interrupted_event(interrupt_time, status)

    def failed_event(self, fail_time: datetime, fail_trace: list[str]) -> None:
        with self._lock, self._tolerant():
            self._finish()
            super().failed_event(fail_time, fail_trace)

    def _finish(self) -> None:
        """Write what has not been written yet, and what is derived from the journal."""
        self.save_cout()
        self._save_scalars()
        self.save_json(read_scalars(self.folder), "metrics.json")

    def save_json(self, obj: Any, filename: str) -> None:
        write_json(self.folder / filename, obj)

    def save_cout(self) -> None:
        write_text(self.folder / "cout.txt", self._printed_before + self._capture.text())

    def _read_printed(self) -> str:
        path = self.folder / "cout.txt"
        return path.read_text(encoding="utf-8").rstrip("\n") + "\n" if path.exists() else ""

    def find_or_save(self, filename: str, store_dir: Path) -> Path:
        """Store a source once for all runs, under its name and digest."""
        source = Path(filename)
        stored = Path(store_dir) / f"{source.stem}_{get_digest(filename)}{source.suffix}"
        if not stored.exists():
            self._copy(source, stored)
        return stored

    @staticmethod
    def _copy(source: Path, target: Path) -> None:
        with whole_file(target) as partial_copy:
            partial_copy.write_bytes(source.read_bytes())


# What surrounds a run


class _Terminated(KeyboardInterrupt):
    """SIGTERM arrived; Sacred records the run as INTERRUPTED, and no `except Exception` on the way swallows it."""


@contextmanager
def _interrupts_exit() -> Iterator[None]:
    """Let SIGTERM unwind the run as an interrupt does; exit with the customary codes, without a traceback."""

    def terminate(_number: int, _frame: FrameType | None) -> None:
        raise _Terminated

    in_main_thread = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, terminate) if in_main_thread else None
    try:
        yield
    except KeyboardInterrupt as interrupt:
        number = signal.SIGTERM if isinstance(interrupt, _Terminated) else signal.SIGINT
        raise SystemExit(128 + number) from None
    finally:
        if in_main_thread:
            signal.signal(signal.SIGTERM, before)


@contextmanager
def _logging_to_stderr() -> Iterator[None]:
    """Show our own log lines while the run is on, captured with the rest; other libraries keep their chatter."""
    ours, handler = (
        [logging.getLogger(name) for name in ("__main__", "repro", "stages")],
        logging.StreamHandler(sys.stderr),
    )
    handler.setFormatter(logging.Formatter("%(message)s"))
    for logger in ours:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        for logger in ours:
            logger.removeHandler(handler)


@contextmanager
def _mirrored(observer: RunFolder) -> Iterator[None]:
    """Copy the run to REPRO_MONGO_URL while it goes on, where that is set."""
    url = os.environ.get("REPRO_MONGO_URL")
    if not url:
        yield
        return
    from stages._tracking_mongo import Mirror

    with Mirror(url, observer.folder) as mirror:
        observer.beaten = mirror.poke
        yield
