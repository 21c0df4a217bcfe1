"""The numbers the paper prints, read from `paper/published.yaml`."""

import math
from collections.abc import Collection, Mapping
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
    """One published table: row key → row, in printed order; `label` names it in the paper's source.

    Tables, rows and numbers that it does not have were not published.
    """

    label: str
    rows: dict[str, PublishedRow]

    def number(self, row: str, column: str) -> PublishedNumber | None:
        """The printed number, or None where the paper leaves the cell empty."""
        return self.rows[row].numbers.get(column) if row in self.rows else None

    def backbone(self, row: str) -> str:
        """The backbone that the paper prints in a row; empty where it prints none."""
        return self.rows[row].backbone if row in self.rows else ""


NOTHING_PUBLISHED = PublishedTable("", {})


def read_published(file: Path) -> dict[str, PublishedTable]:
    """Read every published table by its key (T1a … T12).

    Raises BadInput where the file is missing or says something else than tables of numbers.
    """
    if not file.is_file():
        raise BadInput(f"{file}: no such file; expected the published numbers, restore it with `git checkout {file}`")
    try:
        return {key: _table(key, facts) for key, facts in yaml.safe_load(file.read_text()).items()}
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
        message = f"{file}: not a list of published tables ({error!r}); restore it with `git checkout {file}`"
        raise BadInput(message) from error


def require_shown(
    published: Mapping[str, PublishedTable], shown: Mapping[str, tuple[Collection[str], Collection[str]]], file: Path
) -> None:
    """Raise BadInput for the first published table, row or column that nothing shows: its key must be misspelt.

    `shown` gives the rows and columns of every table by its key.
    """
    for key, table in published.items():
        if key not in shown:
            raise BadInput(f"{file}: table {key} is in no layout, expected some of {', '.join(shown)}; correct its key")
        rows, columns = shown[key]
        for name, row in table.rows.items():
            if name not in rows:
                raise BadInput(f"{file}: {key} shows no row {name}, expected some of {', '.join(rows)}; correct it")
            for column in row.numbers:
                if column not in columns:
                    message = f"{file}: {key} shows no column {column} (row {name})"
                    raise BadInput(f"{message}, expected some of {', '.join(columns)}; correct it")


def _table(key: str, facts: dict[str, Any]) -> PublishedTable:
    if not facts["rows"]:
        raise ValueError(f"{key} names no row, expected some or no {key} at all")
    return PublishedTable(facts["label"], {name: _row(f"{key}/{name}", row) for name, row in facts["rows"].items()})


def _row(place: str, facts: dict[str, Any]) -> PublishedRow:
    try:
        if facts["kind"] not in get_args(Kind):
            raise ValueError(f"kind {facts['kind']}, expected measured or cited")
        numbers = {
            column: PublishedNumber(_finite(value), None if interval is None else _finite(interval))
            for column, (value, interval) in facts["values"].items()
        }
        return PublishedRow(facts["kind"], facts.get("backbone", ""), numbers)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{place}: {error}") from error


def _finite(value: Any) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value}, expected a number")
    return float(value)
