"""The records of an edition back in the folders that `Results` reads, what was not kept as NaN."""

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from repro.editions.columns import absolute, restored
from repro.editions.edition import PLAIN
from repro.editions.groups import COUNT, FACTS, METRICS, VALUE, VALUES, Group, SharedTasks
from repro.errors import BadInput, one_line
from repro.files import seal
from repro.paths import ORIGIN
from repro.results import records as whole
from repro.results.kept_estimates import ESTIMATES

DAMAGE = (
    *(OSError, EOFError, zlib.error, pa.ArrowException),
    *(ValueError, KeyError, TypeError, AttributeError, RecursionError),
)
PLACE = re.compile(rf"{PLAIN}(/[0-9]+)?")  # below all results: of a cell, or of one of its seeds


def restore_records(edition: Path, results: Path, origins: Mapping[str, Any]) -> None:
    """Write the records of an edition as folders that `Results` reads; `origins` are by the folder of the record.

    Raises BadInput where the edition's files are not records.
    """
    try:
        facts = json.loads(gzip.decompress((edition / FACTS).read_bytes()))
        groups = [Group(*each) for each in facts["groups"]]
        table = pq.read_table(edition / VALUES).combine_chunks()
        if sum(group.tasks for group in groups) != table.num_rows:
            raise ValueError(f"it has {table.num_rows} rows, {FACTS} speaks of others")
        columns = _by_record(groups, table)
        cells, curves, estimates, metrics = (facts[name] for name in ("cells", "curves", "estimates", "metrics"))
        if lost := columns.keys() - cells.keys():
            raise ValueError(f"nothing is said of {min(lost)!r:.60}")
        if wrong := [name for name in (*columns, *estimates) if not PLACE.fullmatch(name)]:
            raise ValueError(f"{wrong[0]!r:.60} names no cell or seed")
    except DAMAGE as error:
        message = f"{edition / VALUES}: not the records of an edition ({one_line(error)})"
        raise BadInput(f"{message}; get the edition's folder anew, as with `git checkout {edition}`") from error
    for name, rows in columns.items():
        folder = results / name
        folder.mkdir(parents=True)
        whole.write_records(folder / whole.RECORDS, rows, cells[name])
        whole.write_json(folder / whole.CURVES, curves.get(name, {}))
        if name in metrics:
            whole.write_json(folder / METRICS, metrics[name])
        if name in origins:
            whole.write_json(folder / ORIGIN, origins[name])
        seal(folder)
    for cell, groups_of_cell in estimates.items():
        whole.write_json(results / cell / ESTIMATES, groups_of_cell)


def _by_record(groups: Sequence[Group], table: pa.Table) -> dict[str, dict[str, np.ndarray]]:
    """The rows of every record as columns, what was not kept as NaN."""
    parts: dict[str, list[dict[str, np.ndarray]]] = {}
    shared = SharedTasks()
    for group, rows in zip(groups, _slices(groups, table), strict=True):
        counts = shared.with_joint(group, absolute(_columns(rows, COUNT)))
        found = restored(counts, group.queries) | _columns(rows, VALUE)
        keys = {
            "protocol": np.full(group.tasks, group.protocol, object),
            "way": np.full(group.tasks, group.way, np.int32),
            "task": np.arange(group.tasks, dtype=np.int32),
        }
        nothing = np.full(group.tasks, np.nan, np.float32)
        parts.setdefault(group.folder, []).append(
            keys | {measure: found.get(measure, nothing) for measure in whole.MEASURES}
        )
    return {
        folder: {name: np.concatenate([part[name] for part in of_folder]) for name in of_folder[0]}
        for folder, of_folder in parts.items()
    }


def _slices(groups: Sequence[Group], table: pa.Table) -> Iterator[pa.Table]:
    start = 0
    for group in groups:
        yield table.slice(start, group.tasks)
        start += group.tasks


def _columns(rows: pa.Table, kind: str) -> dict[str, np.ndarray]:
    """The columns of a kind that these rows have."""
    named = [(name, rows[name]) for name in rows.column_names if name.startswith(kind)]
    return {name.removeprefix(kind): column.to_numpy() for name, column in named if not column.null_count}
