"""Where every shown number comes from, as `provenance.json` says it: number → cell → record → steps to the dataset."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.results.intervals import Mean
from repro.results.origins import Step, read_origin
from repro.results.records import RECORDS, record_digest
from repro.results.store import Reading


@dataclass(frozen=True)
class Origin:
    """One evaluated seed of a cell: where its record lies, its hash, and the evaluation, where one was noted."""

    cell: str
    seed: str
    record: str
    sha256: str
    evaluation: Step | None

    @property
    def steps(self) -> list[Step]:
        """The evaluation and everything behind it, the dataset last."""
        return self.evaluation.chain() if self.evaluation else []


@dataclass(frozen=True)
class Traced:
    """One shown number and the reading behind it."""

    place: str  # table/row/column, or figure
    reading: Reading
    mean: Mean


def origin(results: Path, folder: Path) -> Origin:
    """Trace the record in one folder below that of all results."""
    record, (cell, seed) = folder / RECORDS, folder.relative_to(results).parts
    return Origin(cell, seed, record.as_posix(), record_digest(record), read_origin(folder, cell))


def all_steps(origins: Iterable[Origin]) -> dict[str, Step]:
    """Every step behind these cells once, by its key, in a stable order."""
    steps = {step.key: step for origin in origins for step in origin.steps}
    return dict(sorted(steps.items(), key=lambda item: (item[1].stage, item[1].cell, item[0])))


def as_json(origins: list[Origin], numbers: list[Traced]) -> str:
    """The whole of provenance.json: every shown number, each cell with its seeds, steps once."""
    cells: dict[str, dict[str, Any]] = {}
    for each in origins:
        evaluation = each.evaluation and each.evaluation.key
        cells.setdefault(each.cell, {})[each.seed] = {
            "record": each.record,
            "sha256": each.sha256,
            "evaluation": evaluation,
        }
    content = {
        "numbers": [_number(number) for number in numbers],
        "cells": cells,
        "steps": {key: _step(step) for key, step in all_steps(origins).items()},
    }
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _number(number: Traced) -> dict[str, Any]:
    reading, mean = number.reading, number.mean
    return {
        "place": number.place,
        "cell": reading.cell.name,
        "protocol": reading.protocol,
        "way": reading.way,
        "measure": reading.measure,
        "mean": mean.mean,
        "interval": mean.ci,
        "tasks": mean.tasks,
    }


def _step(step: Step) -> dict[str, Any]:
    """One step; its inputs by their keys."""
    return {
        "stage": step.stage,
        "cell": step.cell,
        "seed": step.seed,
        "settings": step.settings,
        "code": step.code,
        "output": step.output,
        "run": step.run,
        "inputs": {role: one.key for role, one in step.inputs.items()},
    }
