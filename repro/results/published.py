"""The numbers the paper prints, read from `paper/published.yaml`."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

from repro.errors import BadInput

Kind = Literal["measured", "cited"]


@dataclass(frozen=True)
class PublishedNumber:
    """One printed number; `interval` is the half-width of its 95 % interval, None where the paper gives none."""

    value: float
    interval: float | None


@dataclass(frozen=True)
class PublishedRow:
    """One row of a published table: column key → number; `backbone` where the table names one."""

    kind: Kind
    backbone: str
    numbers: dict[str, PublishedNumber]


@dataclass(frozen=True)
class PublishedTable:
    """One published table: row key → row, in printed order; `label` names it in the paper's source."""

    label: str
    rows: dict[str, PublishedRow]

    def number(self, row: str, column: str) -> PublishedNumber | None:
        """The printed number, or None where the paper leaves the cell empty."""
        return self.rows[row].numbers.get(column) if row in self.rows else None


def read_published(file: Path) -> dict[str, PublishedTable]:
    """Read every published table by its key (T1a … T12).

    Raises BadInput where the file is missing or says something else than tables of numbers.
    """
    if not file.is_file():
        raise BadInput(f"{file}: no such file; expected the published numbers, restore it with `git checkout {file}`")
    try:
        return {key: _table(facts) for key, facts in yaml.safe_load(file.read_text()).items()}
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
        message = f"{file}: not a list of published tables ({error!r}); restore it with `git checkout {file}`"
        raise BadInput(message) from error


def _table(facts: dict[str, Any]) -> PublishedTable:
    return PublishedTable(facts["label"], {key: _row(row) for key, row in facts["rows"].items()})


def _row(facts: dict[str, Any]) -> PublishedRow:
    kind = facts["kind"]
    if kind not in get_args(Kind):
        raise ValueError(f"kind {kind}, expected measured or cited")
    numbers = {
        column: PublishedNumber(_finite(value), None if interval is None else _finite(interval))
        for column, (value, interval) in facts["values"].items()
    }
    return PublishedRow(kind, facts.get("backbone", ""), numbers)


def _finite(value: Any) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value}, expected a number")
    return float(value)
