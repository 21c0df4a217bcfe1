"""The parts of the pipeline, a replicate each: done, running, failed or waiting, and how long each will still take."""

import hashlib
import shutil
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from repro import paths
from repro.errors import BadInput, one_line
from stages.origins import is_current
from stages.settings.planned import REPLICATED, planned
from stages.tracking import of_seed, run_folders
from stages.tracking.names import RUN, cell_of
from tools.clock import clock
from tools.watching.hope import FINDERS, Hope
from tools.watching.runs import STUCK_SECONDS, WatchedRun, read_run

Key = tuple[str, str]  # stage and cell, as runs are named
STAGES = (*REPLICATED, "summary", "paper")
SLOW_TIMES = 10  # as long as with other seeds


@dataclass(frozen=True)
class Part:
    """What one process computes. `left` is in seconds, None where nothing was measured that tells."""

    stage: str
    name: str
    seed: int | None
    state: str
    run: WatchedRun | None
    problem: str = ""
    left: float | None = None

    @property
    def title(self) -> str:
        return f"{self.stage} {self.name}" + ("" if self.seed is None else f", seed {self.seed}")


@dataclass(frozen=True)
class Status:
    """All parts in the pipeline's order at one moment; `free` is the disk's room in bytes.

    `hope` says how the first results look.
    """

    now: datetime
    parts: list[Part]
    free: int
    hope: list[str] = field(default_factory=list)

    def of(self, state: str) -> list[Part]:
        """The parts that are in this state."""
        return [part for part in self.parts if part.state == state]

    @property
    def problems(self) -> list[Part]:
        return [part for part in self.parts if part.problem]

    @property
    def unmeasured(self) -> list[Part]:
        """The parts of which nothing that was measured tells how long they take."""
        return [part for part in self.parts if part.left is None]

    @property
    def left(self) -> float | None:
        """Seconds until all else is done with as many side by side as run now; None where that is nothing."""
        known = [part.left for part in self.parts if part.state != "done" and part.left is not None]
        if self.unmeasured and not known:
            return None
        return max([sum(known) / max(1, len(self.of("running"))), *known], default=0.0)


def read_status(runs: Path, now: datetime | None = None) -> Status:
    """What the files of this workspace say; raises BadInput where nothing is planned yet."""
    now = now or datetime.now(UTC)
    newest = _newest_runs(runs)
    parts = [_part(stage, name, seed, values, newest, now) for stage, name, seed, values in _planned()]
    parts = [_settled(part, parts) for part in parts]
    typical = _typical(part for part in parts if part.state == "done")
    left = [replace(part, left=_left(part, typical), problem=part.problem or _slow(part, typical)) for part in parts]
    hope = Hope()
    lines = [line for kind in FINDERS for line in hope(kind)]
    return Status(now, left, shutil.disk_usage(".").free, lines)


def _planned() -> list[tuple[str, str, int | None, dict[str, Any]]]:
    found: list[tuple[str, str, int | None, dict[str, Any]]] = []
    for stage in STAGES:
        for file in sorted((paths.SETTINGS / stage).glob("*.json")):
            values = planned(stage, file.stem)
            seeds = values["seeds"] if stage in REPLICATED else [None]
            found += [(stage, file.stem, seed, values) for seed in seeds]
    if not found:
        raise BadInput(f"{paths.SETTINGS}: nothing is planned yet, expected a file per stage; start tools/repro first")
    return found


def _newest_runs(runs: Path) -> dict[Key, Path]:
    """The last run's folder of every stage and cell."""
    named = [folder for folder in run_folders(runs) if RUN.fullmatch(folder.name)]
    return {(folder.name.split("-")[3], cell_of(folder.name)): folder for folder in named}


def _part(  # noqa: PLR0917 - one planned replicate and what it is compared with
    stage: str, name: str, seed: int | None, values: dict[str, Any], newest: dict[Key, Path], now: datetime
) -> Part:
    cell = of_seed(name, seed) if seed is not None else "all" if stage == "paper" else name
    folder = newest.get((stage, cell))
    run = read_run(folder) if folder else None
    if run and run.running:
        return Part(stage, name, seed, "running", run, run.problem(now))
    broken = ""
    try:
        done = is_current(stage, name, values, seed) if seed is not None else _is_locked(stage, name)
    except BadInput as error:
        done, broken = False, str(error)
    problem = broken or (run.problem(now) if run and not done else "")
    return Part(stage, name, seed, "done" if done else "failed" if problem else "waiting", run, problem)


def _is_locked(stage: str, name: str) -> bool:
    """Tell whether DVC's lock knows a stage without replicates with the settings that it has now.

    Raises BadInput where the file is not a lock: it was cut off, or is half merged.
    """
    file = paths.settings(stage, name)
    try:
        lock = yaml.load(paths.LOCK.read_bytes(), yaml.CSafeLoader)  # noqa: S506 - it is the safe one, in C
        entries = [dep for entry in lock["stages"].values() for dep in entry.get("deps", [])]
        known = {dep.get("md5") for dep in entries if dep["path"] == file.as_posix()}
    except FileNotFoundError:  # nothing has run yet
        return False
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = f"{paths.LOCK}: not what DVC writes ({one_line(error):.120})"
        raise BadInput(f"{message}; restore it, `git checkout {paths.LOCK}` say") from error
    return hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest() in known


def _settled(part: Part, parts: list[Part]) -> Part:
    """What sums up the others waits for them, whatever DVC's lock says of its settings."""
    if (
        part.seed is None
        and part.state == "done"
        and any(each.state != "done" for each in parts if each.seed is not None)
    ):
        return replace(part, state="waiting")
    return part


def _typical(parts: Iterable[Part]) -> dict[tuple[str, ...], float]:
    """Median seconds of what is done, by stage, by stage and dataset, and by stage and name."""
    spent = defaultdict(list)
    for part in parts:
        if part.run and part.run.status == "COMPLETED":
            for key in _keys(part):
                spent[key].append(part.run.seconds)
    return {key: median(seconds) for key, seconds in spent.items()}


def _keys(part: Part) -> list[tuple[str, ...]]:
    return [(part.stage, part.name), (part.stage, part.name.split("-")[0], "*"), (part.stage,)]


def _slow(part: Part, typical: dict[tuple[str, ...], float]) -> str:
    """Named where a run without steps of its own takes far longer than the same stage with other seeds did."""
    usual = typical.get((part.stage, part.name))
    if usual is None or part.state != "running" or part.run is None or part.run.loss.steps:
        return ""
    if part.run.seconds <= max(STUCK_SECONDS, SLOW_TIMES * usual):
        return ""
    return f"runs for {clock(part.run.seconds)}, with other seeds for {clock(usual)}; see what its process waits for"


def _left(part: Part, typical: dict[tuple[str, ...], float]) -> float | None:
    """Seconds that it still takes: by its own steps where it trains, else by what is most like it and was measured."""
    if part.state == "done":
        return 0.0
    usual = next((typical[key] for key in _keys(part) if key in typical), None)
    if part.run and part.state == "running":
        pace, steps = part.run.seconds_per_step, part.run.steps
        if pace is not None and steps and part.run.step <= steps:
            return pace * (steps - part.run.step)
        return None if usual is None else max(0.0, usual - part.run.seconds)
    return usual
