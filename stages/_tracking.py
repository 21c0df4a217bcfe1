"""The folder of one run, `runs/<time>-<stage>-<cell>-<random>`: the record that everything else is a copy of.

    run.json      status, times, result, artifacts, host, commit, packages, traceback (as Sacred lays it out)
    config.json   parameters
    metrics.jsonl every scalar when it was logged: [name, step, value, time]; a line {"resumed": time} per resumption
    metrics.json  the same by name, written when the run ends (as Sacred lays it out)
    cout.txt      what was printed
    artifacts/    files that the stage attached

Sources are shared by all runs, under `runs/_sources`.
"""

import fcntl
import hashlib
import json
import os
import re
import secrets
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import unquote

from repro import paths
from repro.errors import BadInput
from repro.files import whole_file

ROOT = Path(__file__).resolve().parent.parent
JOURNAL = "metrics.jsonl"
SHORTEST_SECRET = 4  # a shorter password is blanked out in URLs only, or it would tear holes into ordinary words
UNFINISHED = ("RUNNING", "INTERRUPTED")
USERINFO = re.compile(r"(\w[\w+.-]*://)[^/\s@'\"]+@")


def runs_folder() -> Path:
    """`runs/` of the repository; of the one a queued DVC experiment was started from, not of its temporary copy."""
    return Path(os.environ.get("DVC_ROOT") or ROOT) / paths.RUNS


def redact(text: str) -> str:
    """Blank out user and password of every URL in the text, and the password of REPRO_MONGO_URL wherever it stands."""
    userinfo = os.environ.get("REPRO_MONGO_URL", "").partition("://")[2].rpartition("@")[0]
    password = userinfo.partition(":")[2]
    for secret in (userinfo, password, unquote(password)):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return USERINFO.sub(r"\1***@", text)


@contextmanager
def bad_input_exits() -> Iterator[None]:
    """Turn BadInput into its one sentence on standard error and exit code 2."""
    try:
        yield
    except BadInput as error:
        print(f"error: {redact(' '.join(str(error).splitlines()))}", file=sys.stderr)
        raise SystemExit(2) from None


# Names, locks and resumption


def create(runs: Path, stage: str, cell: str) -> Path:
    """Make the folder of a new run; its name is unique also among parallel stages and machines."""
    if not re.fullmatch(r"[\w.+-]+", stage + cell):
        raise BadInput(f"{cell!r} cannot name a run; use letters, digits and any of . _ + - for names of cells")
    now = datetime.now(UTC)  # to the millisecond: the newest run is the last by name
    if before := _names(runs, stage, cell):  # also where the clock was set back since
        now = max(now, datetime.strptime(f"{before[-1][:19]}+0000", "%Y%m%d-%H%M%S-%f%z") + timedelta(milliseconds=1))
    folder = runs / f"{now:%Y%m%d-%H%M%S}-{now.microsecond // 1000:03d}-{stage}-{cell}-{secrets.token_hex(3)}"
    folder.mkdir(parents=True)
    return folder


def hold(folder: Path) -> TextIO | None:
    """Take the run for this process until the result is closed or the process ends; None where another has it."""
    lock = (folder / ".lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    return lock


def resume(runs: Path, stage: str, cell: str, digest: str) -> tuple[Path, TextIO] | None:
    """Take the newest run of this stage and cell if it has this configuration, did not end and nobody runs it."""
    names = _names(runs, stage, cell)
    if not names:
        return None
    folder = runs / names[-1]
    lock = hold(folder)
    if lock is None:
        return None
    try:
        entry = read_json(folder / "run.json")
    except BadInput:  # it died before its first record: nothing to continue
        entry = {}
    if not isinstance(entry, dict):
        entry = {}
    if entry.get("status") in UNFINISHED and (entry.get("meta") or {}).get("fingerprint") == digest:
        return folder, lock
    lock.close()
    return None


def _names(runs: Path, stage: str, cell: str) -> list[str]:
    """The runs of one stage and cell, the newest last."""
    pattern = re.compile(rf"\d{{8}}-\d{{6}}-\d{{3}}-{re.escape(f'{stage}-{cell}')}-[0-9a-f]{{6}}")
    return sorted(name for name in os.listdir(runs) if pattern.fullmatch(name)) if runs.is_dir() else []


@dataclass(frozen=True)
class Recorded:
    """What the folder of a run says: its name, status, commit, result (empty where it has none) and configuration."""

    name: str
    status: str
    commit: str
    result: dict[str, Any]
    config: dict[str, Any]


def recorded(runs: Path, stage: str) -> Iterator[Recorded]:
    """Every run of a stage that can be read, the newest last; tools/sync names those that cannot."""
    for file in sorted(runs.glob(f"*-{stage}-*/run.json")):
        with suppress(BadInput, KeyError, TypeError, ValueError):
            entry, config = read_json(file), read_json(file.with_name("config.json"))
            commits = [repository["commit"] or "" for repository in entry["experiment"]["repositories"]]
            result = dict(entry["result"] or {})
            yield Recorded(file.parent.name, entry["status"], next(iter(commits), ""), result, dict(config))


def fingerprint(config: dict[str, Any]) -> str:
    """A digest of the configuration: a run is continued only with the one it began with."""
    return hashlib.sha256(json.dumps(plain(config), sort_keys=True).encode()).hexdigest()[:16]


# Files


def write_text(path: Path, text: str) -> None:
    """Write the file whole or not at all, without credentials."""
    with whole_file(path) as partial:
        partial.write_text(redact(text), encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write any value as JSON; what JSON does not know becomes a plain value or its text."""
    write_text(path, json.dumps(plain(value), indent=2, sort_keys=True))


def read_json(path: Path) -> Any:
    """Read a file of the record; raises BadInput that names it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} is missing or not JSON ({error}); remove that run's folder or restore it") from error


def plain(value: Any) -> Any:
    """Turn dictionaries, sequences, arrays, numbers of any library, times and paths into what JSON knows."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if hasattr(value, "tolist"):  # numbers and arrays of numpy and torch
        return plain(value.tolist())
    return str(value)


# Scalars


def append_scalars(folder: Path, rows: Iterable[tuple[str, int, float, str]]) -> None:
    """Add rows (name, step, value, time) to the journal."""
    _append(folder / JOURNAL, "".join(json.dumps(row) + "\n" for row in rows))


def mark_resumption(folder: Path, time: str) -> None:
    """Note that what follows was logged by a resumed process."""
    # A line cut short by a crash must not swallow this one.
    _append(folder / JOURNAL, "\n" + json.dumps({"resumed": time}) + "\n")


def read_scalars(folder: Path) -> dict[str, dict[str, list[Any]]]:
    """All series of the run by name: steps, values, timestamps.

    A resumed process starts from a checkpoint and logs again what came after it: its first step of a series replaces
    the older rows from that step on.
    """
    series: dict[str, dict[str, list[Any]]] = {}
    stale: set[str] = set()
    for row in _rows(folder / JOURNAL):
        if isinstance(row, dict):
            stale = set(series)
            continue
        name, step, value, time = row
        points = series.setdefault(name, {"steps": [], "values": [], "timestamps": []})
        if name in stale:
            stale.remove(name)
            kept = sum(older < step for older in points["steps"])
            for column in points.values():
                del column[kept:]
        for column, item in zip(points.values(), (step, value, time), strict=True):
            column.append(item)
    return series


def _rows(journal: Path) -> Iterator[Any]:
    if not journal.exists():
        return
    with journal.open(encoding="utf-8") as stream:
        for line in stream:
            try:
                yield json.loads(line)
            except ValueError:  # blank, or cut short by a crash
                continue


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as stream:
        stream.write(text)


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Wait for and hold a folder while the block runs; nothing is written there."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system that cannot lock folders, as NFS: no protection there
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
