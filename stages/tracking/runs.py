"""The folder of one run, `runs/<time>-<stage>-<cell>-<random>`: the record that everything else is a copy of.

    run.json      status, times, result, artifacts, host, commit, packages, traceback (as Sacred lays it out)
    config.json   settings
    metrics.jsonl every scalar when it was logged: [name, step, value, time]
    metrics.json  the same by name, written when the run ends (as Sacred lays it out)
    cout.txt      what was printed
    artifacts/    files that the stage attached
    SHA256SUMS    content hashes of all of them, written when the run ends

Beside them, `runs/_sources` holds the sources of all runs, and `runs/by_output/<sha256>` leads to the run that wrote
the file with that content.
"""

import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

from repro import paths
from repro.errors import BadInput
from repro.files import seal, try_to_lock
from stages.tracking.files import read_facts, read_scalars, write_json
from stages.tracking.names import PLAIN, RANDOM, TIME

ROOT = Path(__file__).resolve().parents[2]
BY_OUTPUT = "by_output"
UNFINISHED = ("RUNNING", "INTERRUPTED")
DAMAGE = (BadInput, OSError, AttributeError, KeyError, TypeError, ValueError)  # what reading a forged record raises


def runs_folder() -> Path:
    """`runs/` of the repository; of the one a queued DVC experiment was started from, not of its temporary copy."""
    return Path(os.environ.get("DVC_ROOT") or ROOT) / paths.RUNS


def of_seed(cell: str, seed: int | None) -> str:
    """How the runs of one replicate name their cell, so that each continues its own."""
    return f"{cell}-seed{seed}"


def run_folders(runs: Path) -> list[Path]:
    """Every run's folder below `runs`, the oldest first; what else lies there is left out."""
    entries = sorted(runs.iterdir()) if runs.is_dir() else []
    return [entry for entry in entries if entry.is_dir() and not entry.name.startswith((".", "_", BY_OUTPUT))]


def _runs_of(runs: Path, stage: str, cell: str) -> list[Path]:
    """The runs of one stage and cell, the oldest first."""
    pattern = re.compile(rf"{TIME}-{re.escape(f'{stage}-{cell}')}-{RANDOM}")
    names = sorted(name for name in os.listdir(runs) if pattern.fullmatch(name)) if runs.is_dir() else []
    return [runs / name for name in names if (runs / name).is_dir()]


@dataclass(frozen=True)
class RecordedRun:
    """What the folder of a run says: its name, status, commit, result (empty where it has none) and configuration."""

    name: str
    status: str
    commit: str
    result: dict[str, Any]
    config: dict[str, Any]


def recorded_runs(runs: Path, stage: str) -> Iterator[RecordedRun]:
    """Every run of a stage that can be read, the newest last; tools/sync names those that cannot."""
    for file in sorted(runs.glob(f"*-{stage}-*/run.json")):
        with suppress(BadInput, KeyError, TypeError, ValueError):
            entry, config = read_facts(file), read_facts(file.with_name("config.json"))
            commits = [repository["commit"] or "" for repository in entry["experiment"]["repositories"]]
            result = dict(entry["result"] or {})
            yield RecordedRun(file.parent.name, entry["status"], next(iter(commits), ""), result, dict(config))


# A run begins


def begin(runs: Path, stage: str, cell: str, config: dict[str, Any]) -> tuple[Path, TextIO, str]:
    """Make the folder of a new run; give it, its lock, and the name of the run that it continues, or nothing.

    It continues the last run of its stage and cell where that one did not finish and had the same configuration.
    """
    before = _runs_of(runs, stage, cell)
    folder = create(runs, stage, cell)
    while (lock := hold(folder)) is None:
        time.sleep(0.01)  # another start has it for a moment, to see whether anybody does
    mark_dead_runs(runs, stage, cell, note=f"killed; found by {folder.name}")
    continued = before[-1].name if before and _was_left(before[-1], config) else ""
    return folder, lock, continued


def create(runs: Path, stage: str, cell: str) -> Path:
    """Make the folder of a new run; its name is unique also among parallel stages and machines."""
    if not PLAIN.fullmatch(stage + cell):
        raise BadInput(f"{cell!r} cannot name a run; use letters, digits and any of . _ + - for names of cells")
    now = datetime.now(UTC)  # to the millisecond: the newest run is the last by name
    if before := _runs_of(runs, stage, cell):  # also where the clock was set back since
        with suppress(ValueError, OverflowError):  # a name that only looks like one of ours
            last = datetime.strptime(f"{before[-1].name[:19]}+0000", "%Y%m%d-%H%M%S-%f%z")
            now = max(now, last + timedelta(milliseconds=1))
    folder = runs / f"{now:%Y%m%d-%H%M%S}-{now.microsecond // 1000:03d}-{stage}-{cell}-{secrets.token_hex(3)}"
    folder.mkdir(parents=True)
    return folder


def hold(folder: Path) -> TextIO | None:
    """Lock the run for this process until the result is closed or the process ends; None where another has it."""
    lock = (folder / ".lock").open("w")
    with suppress(OSError):
        if try_to_lock(lock):
            return lock
    lock.close()
    return None


def mark_dead_runs(runs: Path, stage: str, cell: str, note: str) -> None:
    """Mark the runs of a stage and cell INTERRUPTED that say RUNNING while no process holds them: they were killed."""
    for folder in _runs_of(runs, stage, cell):
        with suppress(*DAMAGE):  # a folder that only looks like one of ours
            if _status(folder) == "RUNNING" and (lock := hold(folder)) is not None:
                with lock:
                    _mark_dead(folder, note)


def _mark_dead(folder: Path, note: str) -> None:
    entry = read_facts(folder / "run.json")
    if entry["status"] == "RUNNING":  # it may have ended just before it was locked
        entry |= {"status": "INTERRUPTED", "stop_time": entry.get("heartbeat") or entry.get("start_time")}
        entry["meta"] = {**entry.get("meta", {}), "note": note}
        write_json(folder / "metrics.json", read_scalars(folder))
        write_json(folder / "run.json", entry)
        seal(folder)


def _status(folder: Path) -> str:
    try:
        return str(read_facts(folder / "run.json").get("status"))
    except BadInput:  # it died before its first record
        return ""


def has_ended(folder: Path) -> bool:
    """Tell whether the record says that its run is over."""
    return _status(folder) not in ("", "RUNNING")


def _was_left(folder: Path, config: dict[str, Any]) -> bool:
    with suppress(BadInput):
        return _status(folder) in UNFINISHED and read_facts(folder / "config.json") == config
    return False


# A run has ended


def link_outputs(folder: Path, result: Any) -> None:
    """Let `by_output/<sha256>` lead to this run for each of the outputs that its result names; the newest run wins."""
    outputs = result.get("outputs") if isinstance(result, dict) else None
    digests = {str(digest) for digest in outputs.values()} if isinstance(outputs, dict) else set()
    links = folder.parent / BY_OUTPUT
    with suppress(OSError):  # a file system without symbolic links
        for digest in digests:
            if re.fullmatch(r"[0-9a-f]{64}", digest):
                links.mkdir(exist_ok=True)
                fresh = links / f".{digest}.{secrets.token_hex(4)}"
                fresh.symlink_to(Path("..") / folder.name, target_is_directory=True)
                fresh.replace(links / digest)
