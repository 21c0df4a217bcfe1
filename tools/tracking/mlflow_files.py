"""Writes runs as MLflow's file store lays them out, without MLflow: one experiment per stage, one run per run folder.

    DIR/<experiment>/meta.yaml
    DIR/<experiment>/<run>/meta.yaml            status and times
    DIR/<experiment>/<run>/params/<name>        the configuration, with dots for nesting
    DIR/<experiment>/<run>/metrics/<name>       lines `milliseconds value step`; the result is `result.<name>`
    DIR/<experiment>/<run>/tags/<name>          commit, file, the run's folder and its status as Sacred calls it
    DIR/<experiment>/<run>/artifacts/           attached files, and what was printed

Ids are made from names, so exporting again finds its own runs: those that have not changed are left alone, tags that
somebody added in MLflow stay, and what was deleted there stays away. Read back with mlflow-skinny 2.22.5 and 3.17.2;
from 3.13 on MLflow wants MLFLOW_ALLOW_FILE_STORE=true for files, and `mlflow migrate-filestore` moves them to SQLite.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from repro.errors import BadInput
from repro.files import disk_errors_as_bad_input, folder_in_turn
from stages.tracking import run_folders
from stages.tracking.files import read_facts, read_scalars
from stages.tracking.mongo import damage_as_bad_input, state
from stages.tracking.names import cell_of, file_within, flattened
from tools.tracking.services import say

STATUSES = {"RUNNING": 1, "QUEUED": 2, "COMPLETED": 3, "FAILED": 4, "INTERRUPTED": 5, "TIMED_OUT": 5}
STATE = "castle.state"  # the tag that says in which state the folder was exported
PLAIN_NAME = re.compile(r"(?!\.)[\w.\- ]{1,120}", re.ASCII)
LONGEST_VALUE = 6000


def export(runs: Path, target: Path, everything: bool = False, show: Callable[[str], None] = say) -> list[str]:
    """Write the runs whose folders have changed, or `everything`; give a sentence for each that is no record."""
    problems = []
    folders = run_folders(runs)
    with disk_errors_as_bad_input(target):
        target.mkdir(parents=True, exist_ok=True)
    with disk_errors_as_bad_input(target), folder_in_turn(target):
        for number, folder in enumerate(folders, start=1):
            try:
                if _export_run(folder, target, everything):
                    show(f"{number}/{len(folders)} {folder.name}")
            except BadInput as error:
                problems.append(str(error))
    show(f"{len(list(target.glob('[!.]*/*/meta.yaml')))} runs in {target}")
    return problems


def _export_run(folder: Path, target: Path, everything: bool) -> bool:
    """Write one run; tell whether there was anything to do."""
    with damage_as_bad_input(folder, OSError), disk_errors_as_bad_input(target):
        entry, config = read_facts(folder / "run.json"), read_facts(folder / "config.json")
        stage, now = str(entry["experiment"]["name"]), state(folder)
        experiment = target / _number(stage)
        place = experiment / hashlib.sha256(folder.name.encode()).hexdigest()[:32]
        if not everything and (_deleted(place, target) or _read(place / "tags" / STATE) == now):
            return False
        tags = {**_tags(folder, entry), STATE: now}
        partial = target / ".partial"
        shutil.rmtree(partial, ignore_errors=True)  # what a killed export left
        _write_values(partial / "params", {name: _text(value) for name, value in flattened(config).items()})
        _write_values(partial / "metrics", _metrics(folder, entry))
        _write_values(partial / "tags", {**_added_tags(place, tags), **tags})
        _copy_artifacts(folder, entry["artifacts"], partial / "artifacts")
        _write_yaml(partial / "meta.yaml", _run_meta(place, folder, entry))
    _begin_experiment(experiment, stage, entry)
    shutil.rmtree(place, ignore_errors=True)
    partial.rename(place)
    return True


def _begin_experiment(experiment: Path, stage: str, entry: dict[str, Any]) -> None:
    if not (experiment / "meta.yaml").exists():
        begun = _milliseconds(entry["start_time"])
        meta = {"experiment_id": experiment.name, "name": stage, "artifact_location": experiment.resolve().as_uri()}
        times = {"creation_time": begun, "last_update_time": begun, "lifecycle_stage": "active"}
        _write_yaml(experiment / "meta.yaml", {**meta, **times})


def _run_meta(place: Path, folder: Path, entry: dict[str, Any]) -> dict[str, Any]:
    stop = entry.get("stop_time")
    return {
        "artifact_uri": (place.resolve() / "artifacts").as_uri(),
        "end_time": _milliseconds(stop) if stop else None,
        "entry_point_name": "",
        "experiment_id": place.parent.name,
        "lifecycle_stage": "active",
        "run_id": place.name,
        "run_name": cell_of(folder.name) or folder.name,
        "run_uuid": place.name,
        "source_name": "",
        "source_type": 4,  # local
        "source_version": "",
        "start_time": _milliseconds(entry["start_time"]),
        "status": STATUSES.get(entry["status"], STATUSES["FAILED"]),
        "tags": [],
        "user_id": "",
    }


def _tags(folder: Path, entry: dict[str, Any]) -> dict[str, str]:
    commits = [repository["commit"] or "" for repository in entry["experiment"]["repositories"]]
    words = {name: value for name, value in _results(entry).items() if not _is_number(value)}
    return {
        "mlflow.runName": cell_of(folder.name) or folder.name,
        "mlflow.source.name": str(entry["experiment"]["mainfile"]),
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": next(iter(commits), ""),
        "castle.run": folder.name,
        "castle.status": str(entry["status"]),
        **{name: _text(value) for name, value in words.items()},
    }


def _metrics(folder: Path, entry: dict[str, Any]) -> dict[str, str]:
    """Every series, and the numbers of the result as series of one point, in MLflow's lines."""
    lines = {}
    for name, series in read_scalars(folder).items():
        points = zip(series["timestamps"], series["values"], series["steps"], strict=True)
        lines[name] = "".join(f"{_milliseconds(time)} {float(value)} {int(step)}\n" for time, value, step in points)
    ended = _milliseconds(entry.get("stop_time") or entry["start_time"])
    results = {name: value for name, value in _results(entry).items() if _is_number(value)}
    return {**lines, **{name: f"{ended} {float(value)} 0\n" for name, value in results.items()}}


def _results(entry: dict[str, Any]) -> dict[str, Any]:
    return flattened({"result": entry["result"]}) if isinstance(entry.get("result"), dict) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _copy_artifacts(folder: Path, names: list[str], target: Path) -> None:
    target.mkdir()
    if (folder / "cout.txt").is_file():
        shutil.copyfile(folder / "cout.txt", target / "cout.txt")
    for name in names:
        copy = file_within(target, name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file_within(folder / "artifacts", name), copy)


# What somebody did in MLflow


def _deleted(place: Path, target: Path) -> bool:
    """Tell whether the run, or its whole experiment, was deleted there."""
    return (target / ".trash" / place.parent.name).exists() or "lifecycle_stage: deleted" in _read(place / "meta.yaml")


def _added_tags(place: Path, ours: dict[str, str]) -> dict[str, str]:
    kept = {file.name for file in (place / "tags").iterdir() if file.is_file()} if (place / "tags").is_dir() else set()
    return {name: _read(place / "tags" / name) for name in kept - {_file_name(name) for name in ours}}


# Files


def _write_values(folder: Path, values: dict[str, str]) -> None:
    folder.mkdir(parents=True)
    for name, text in values.items():
        (folder / _file_name(name)).write_text(text, encoding="utf-8")


def _write_yaml(file: Path, value: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(value), encoding="utf-8")


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _file_name(name: str) -> str:
    """The name where it can be a file's name in MLflow; else what is left of it with a digest of all of it."""
    if PLAIN_NAME.fullmatch(name):
        return name
    left = re.sub(r"[^\w.\- ]", "_", name, flags=re.ASCII).lstrip(".")[:100]
    return f"{left}_{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:8]}"


def _text(value: Any) -> str:
    """The value in one line, as a person would write it."""
    text = value if isinstance(value, str) and value.isprintable() else json.dumps(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def _number(stage: str) -> str:
    """An experiment's id from its name, as many digits as MLflow's own."""
    return f"{int(hashlib.sha256(stage.encode()).hexdigest(), 16) % 10**18:018d}"


def _milliseconds(time: str) -> int:
    return round(datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp() * 1000)
