"""The files of a run's folder: JSON that is written whole, and the journal of scalars."""

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from repro.errors import BadInput
from repro.files import whole_file

JOURNAL = "metrics.jsonl"
COLUMNS = ("steps", "values", "timestamps")
Scalar = tuple[str, int, float, str]  # name, step, value, time


def write_text(path: Path, text: str) -> None:
    """Write the file whole or not at all."""
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8", errors="replace")


def write_json(path: Path, value: Any) -> None:
    """Write any value as JSON; what JSON does not know becomes a plain value or its text."""
    write_text(path, json.dumps(plain(value), indent=2, sort_keys=True))


def read_json(path: Path) -> Any:
    """Read a file of the record; raises BadInput that names it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{path} is missing or not JSON ({error}); restore it, or move what is no run away") from error


def read_facts(path: Path) -> dict[str, Any]:
    """Read a file of the record that holds names and their values; raises BadInput that names it."""
    found = read_json(path)
    if not isinstance(found, dict):
        raise BadInput(
            f"{path} holds {found!r:.60}, expected names and values; restore it, or move what is no run away"
        )
    return found


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


def append_scalars(folder: Path, rows: Iterable[Scalar]) -> None:
    """Add rows to the journal."""
    text = "".join(json.dumps(row) + "\n" for row in rows)
    with (folder / JOURNAL).open("a", encoding="utf-8") as stream:
        stream.write(text)


def read_scalars(folder: Path) -> dict[str, dict[str, list[Any]]]:
    """All series of the run by name: steps, values, timestamps. A line that was cut short by a crash is left out."""
    series: dict[str, dict[str, list[Any]]] = {}
    journal = folder / JOURNAL
    for line in journal.read_text(encoding="utf-8").splitlines() if journal.exists() else ():
        try:
            name, *point = json.loads(line)
        except (ValueError, RecursionError):
            continue
        columns = series.setdefault(name, {column: [] for column in COLUMNS})
        for column, item in zip(COLUMNS, point, strict=True):
            columns[column].append(item)
    return series
