"""The chain of steps behind a cell's record, as the stages wrote it into `origin.json`, read strictly.

A step says what ran with which settings and code, the hash of what it made, and the same of each of its inputs down to
the dataset. It names no run, time or commit, so equal results have equal origins on every machine; `Step.run` leads to
whoever ran it here.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from repro.errors import BadInput
from repro.files import check_seal
from repro.paths import ORIGIN
from repro.results.records import RECORDS, record_digest


@dataclass(frozen=True)
class Step:
    """One stage's work on one cell; `code` and `output` are content hashes, `inputs` are by their role."""

    stage: str
    cell: str
    seed: int
    settings: dict[str, Any]
    code: str
    output: str
    inputs: dict[str, "Step"]

    @cached_property
    def key(self) -> str:
        """A short name of the step with all that is behind it; equal steps share it."""
        content = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:12]

    @property
    def run(self) -> str:
        """Where the run that made this output here is recorded, from the root of the repository."""
        return f"runs/by_output/{self.output}/run.json"

    def chain(self) -> list["Step"]:
        """This step and everything behind it, each once, every step before its inputs: the dataset comes last."""
        found = {step.key: step for step in self._inputs_first()}
        return list(found.values())[::-1]

    def _inputs_first(self) -> Iterator["Step"]:
        for _, step in sorted(self.inputs.items(), reverse=True):  # tasks before the model, so that it is shown first
            yield from step._inputs_first()
        yield self


def read_origin(folder: Path, cell: str) -> Step | None:
    """The evaluation behind the record of a cell that lies in this folder, None where no origin was written.

    Raises BadInput where origin.json is not such a chain, was changed, or belongs to another record.
    """
    file = folder / ORIGIN
    if not file.is_file():
        return None
    remedy = f"evaluate {cell} again (`dvc repro` sees what is stale)"
    check_seal(folder, ORIGIN, remedy=remedy)
    try:
        step = _step(json.loads(file.read_text(encoding="utf-8")), "")
        if (step.stage, step.cell) != ("evaluate", cell):
            raise ValueError(f"it is of {step.stage} {step.cell}, expected evaluate {cell}")
        record = record_digest(folder / RECORDS)
        if step.output != record:
            raise ValueError(f"its output is {step.output}, expected that of {RECORDS} beside it, {record}")
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{file}: not the origin of a record ({error}); {remedy}") from error
    return step


def _step(facts: Any, place: str) -> Step:
    """Check one step; `place` is where it stands below the root, with a dot at its end."""
    if not isinstance(facts, dict):
        raise ValueError(f"{place.rstrip('.') or 'the file'} is {type(facts).__name__}, expected a step")
    for name in facts:
        if name not in _FIELDS:
            raise ValueError(f"{place}{name} is unknown, expected {', '.join(_FIELDS)}")
    for name, (fits, expected) in _FIELDS.items():
        if not fits(facts.get(name)):
            raise ValueError(f"{place}{name} is {facts.get(name)!r}, expected {expected}")
    inputs = {role: _step(step, f"{place}inputs.{role}.") for role, step in facts["inputs"].items()}
    return Step(**facts | {"inputs": inputs})


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "stage": (_is_name, "the name of a stage"),
    "cell": (_is_name, "the name of a cell"),
    "seed": (lambda value: type(value) is int, "a whole number"),
    "settings": (lambda value: isinstance(value, dict), "the parameters of the stage by name"),
    "code": (_is_hash, "a SHA-256 in hexadecimal"),
    "output": (_is_hash, "a SHA-256 in hexadecimal"),
    "inputs": (lambda value: isinstance(value, dict), "a step for each input"),
}
