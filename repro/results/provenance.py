"""Where a number comes from: its cell's record, the record's hashes, and the run that wrote it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from repro.errors import BadInput
from repro.files import sha256
from repro.results.intervals import Mean
from repro.results.records import RECORDS
from repro.results.store import Reading


@dataclass(frozen=True)
class Origin:
    """The origin of one cell's record. Fields that nobody recorded are empty."""

    cell: str
    record: str
    sha256: str
    dvc_md5: str
    run_id: str
    git_commit: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Traced:
    """One shown number and the reading behind it."""

    place: str  # table/row/column, or figure
    reading: Reading
    mean: Mean

    def as_json(self) -> dict[str, Any]:
        """What provenance.json says of it."""
        return {
            "place": self.place,
            "cell": self.reading.cell.name,
            "protocol": self.reading.protocol,
            "way": self.reading.way,
            "measure": self.reading.measure,
            "mean": self.mean.mean,
            "interval": self.mean.ci,
            "tasks": self.mean.tasks,
        }


@dataclass(frozen=True)
class WritingRun:
    """The run that wrote a record: its name below runs/, the commit it ran at, and its parameters."""

    run_id: str = ""
    git_commit: str = ""
    params: dict[str, Any] = field(default_factory=dict)


NOT_RECORDED = WritingRun()


def origin(results: Path, cell: str, dvc_hashes: Mapping[str, str], runs: Mapping[str, WritingRun]) -> Origin:
    """Trace one evaluated cell; `dvc_hashes` are by output path, `runs` by the content hash of what they wrote."""
    record = results / cell / RECORDS
    path, digest = (results / cell).as_posix(), sha256(record)
    run = runs.get(digest, NOT_RECORDED)
    return Origin(
        cell,
        f"{path}/{record.name}",
        digest,
        dvc_hashes.get(f"{path}/{record.name}", dvc_hashes.get(path, "")),
        run.run_id,
        run.git_commit,
        run.params,
    )


def read_dvc_hashes(lock: Path) -> dict[str, str]:
    """Hash of every output in a dvc.lock by its path; empty where there is no such file."""
    if not lock.is_file():
        return {}
    try:
        stages = yaml.load(lock.read_text(), Loader=_FAST_LOADER).get("stages", {})
        outs = [out for stage in stages.values() for out in stage.get("outs", [])]
        return {out["path"]: str(out.get("md5", out.get("hash", ""))) for out in outs}
    except (yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        raise BadInput(f"{lock}: not a DVC lock file ({error!r}); restore it with `git checkout {lock}`") from error


_FAST_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def as_json(origins: list[Origin], numbers: list[Traced]) -> str:
    """The whole of provenance.json: cells once, then every shown number."""
    content = {
        "cells": {each.cell: asdict(each) for each in origins},
        "numbers": [number.as_json() for number in numbers],
    }
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
