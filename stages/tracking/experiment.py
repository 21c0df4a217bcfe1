"""The only Sacred code: an experiment around a stage's function, observed by the run's folder.

A run is written to `runs/` and nowhere else. With REPRO_MONGO_URL set, a thread copies the folder to that server at
each heartbeat (`mirror.py`, the code of tools/sync), so a server that is down, slow or dies can neither stop a run nor
lose anything.
"""

import inspect
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Sacred imports pkg_resources, which announces its own end
    import sacred.experiment
    from sacred import SETTINGS
    from sacred.dependencies import PackageDependency, Source, get_digest
    from sacred.randomness import set_global_seed
    from sacred.run import Run

from repro.files import disk_errors_as_bad_input
from stages.tracking import machine
from stages.tracking.capture import output_capture
from stages.tracking.observer import RunFolder
from stages.tracking.runs import ROOT, begin, runs_folder

BEAT_SECONDS = 10.0

# Gathered here for the whole repository and at the run's start; Sacred would ask git once per source file.
SETTINGS.DISCOVER_SOURCES = "none"
SETTINGS.DISCOVER_DEPENDENCIES = "none"
SETTINGS.HOST_INFO.INCLUDE_CPU_INFO = False
SETTINGS.HOST_INFO.INCLUDE_GPU_INFO = False
SETTINGS.CAPTURE_MODE = "no"  # `output_capture` does it: Sacred's capture loses the last lines of a failed run
SETTINGS.CONFIG.ENFORCE_KEYS_MONGO_COMPATIBLE = False  # the copy to Mongo takes care of keys

# Sacred asks `inspect.stack` for its caller's globals, and that walks through every loaded module: 0.1 s with torch.
sacred.experiment.inspect = SimpleNamespace(stack=lambda: [(), (sys._getframe(2),)])  # type: ignore[assignment]


def run_unrecorded(function: Callable[..., Any], settings: Any, config: dict[str, Any]) -> Any:
    """Call a stage's function as a rank that records nothing."""
    set_global_seed(config["seed"])
    return function(settings, SimpleNamespace(log_scalar=lambda *_: None, add_artifact=lambda *_, **__: None))


def run_recorded(
    function: Callable[..., Any], settings: Any, config: dict[str, Any], stage: str, cell: str, runs: Path | None
) -> Any:
    """Call a stage's function with Sacred's run as its log, and give what it returns."""
    runs = runs or runs_folder()
    with ExitStack() as stack:
        with disk_errors_as_bad_input(runs):
            folder, lock, continued = begin(runs, stage, cell, config)
        stack.enter_context(lock)
        capture = stack.enter_context(output_capture())
        stack.enter_context(_logging_to_stderr())
        observer = RunFolder(folder, capture, continued)
        stack.enter_context(_copy_to_mongo(observer))
        return _run_observed(_experiment(function, settings, stage), config, observer)


def _experiment(function: Callable[..., Any], settings: Any, stage: str) -> sacred.Experiment:
    """An experiment with the sources, packages and commit of this repository as they are now."""
    experiment = sacred.Experiment(stage, save_git_info=False)

    def main(_run: Run) -> Any:
        return function(settings, _run)

    main.__name__ = stage
    experiment.main(main)
    commit, dirty = machine.commit(ROOT)
    file = Path(inspect.unwrap(function).__code__.co_filename).resolve()
    repository = f"git:/{ROOT}" if commit else None
    experiment.mainfile = Source(str(file), get_digest(file), repository, commit, dirty)
    imported = {Source(str(source), get_digest(source), None, None, None) for source in machine.sources(ROOT)}
    experiment.base_dir = str(ROOT)
    experiment.sources = {experiment.mainfile} | imported  # equal by name: the main file keeps the commit for all
    experiment.dependencies = {PackageDependency(name, version) for name, version in machine.packages().items()}
    return experiment


def _run_observed(experiment: sacred.Experiment, config: dict[str, Any], observer: RunFolder) -> Any:
    logger = logging.getLogger("sacred")  # a stage's words are its own
    logger.setLevel(logging.CRITICAL + 1)
    experiment.logger = logger  # type: ignore[assignment]  # Sacred declares it as None
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


@contextmanager
def _logging_to_stderr() -> Iterator[None]:
    """Show our own log lines while the run is on, captured with the rest; other libraries keep their chatter."""
    ours = [logging.getLogger(name) for name in ("__main__", "repro", "stages")]
    handler = logging.StreamHandler(sys.stderr)
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
def _copy_to_mongo(observer: RunFolder) -> Iterator[None]:
    """Copy the run to REPRO_MONGO_URL while it goes on, where that is set."""
    url = os.environ.get("REPRO_MONGO_URL")
    if not url:
        yield
        return
    from stages.tracking.mirror import Mirror

    with Mirror(url, observer.folder) as mirror:
        observer.after_beat = mirror.poke
        yield
