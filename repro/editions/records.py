"""The records of all cells of an edition in one small file, and back to the folders that `Results` reads.

`records.parquet` holds counts of right queries, and other values where a table, figure or claim reads them task by
task. `records.json` says which rows are whose and what every record said of itself; of the remaining measures it holds
means with both intervals, and of the curves those whose areas are read.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from repro.editions.columns import absolute, counted, relative, restored
from repro.errors import BadInput, one_line
from repro.files import seal, whole_file
from repro.paths import ORIGIN
from repro.results import records as whole
from repro.results.cell_records import read_curve
from repro.results.kept_estimates import ESTIMATES, as_plain
from repro.results.store import Cell, Reading, Results

VALUES, FACTS = "records.parquet", "records.json"
COUNT, VALUE = "count.", "value."  # of the names of columns
AREA = "ausuc"
METRICS = "metrics.json"  # beside a record


@dataclass(frozen=True)
class Group:
    """The rows of one cell, seed, protocol and way; every task has so many queries of each kind."""

    cell: str
    seed: int
    protocol: str
    way: int
    tasks: int
    queries: int

    @property
    def folder(self) -> str:
        """Where the record lies below all results."""
        return f"{self.cell}/{self.seed}"


class Keeping:
    """Collects the records of an edition, cell by cell; `wanted` says what is kept task by task though it is no count.

    `queries` gives how many queries of each kind the tasks of a list, named by its digest, have.
    """

    def __init__(self, results: Results, wanted: Callable[[Reading], bool], queries: Callable[[str], int]) -> None:
        self.results, self.wanted, self.queries = results, wanted, queries
        self.groups: list[Group] = []
        self.parts: list[dict[str, np.ndarray]] = []
        self.facts: dict[str, dict[str, Any]] = {"cells": {}, "curves": {}, "estimates": {}, "metrics": {}}

    def add(self, cell: Cell) -> None:
        """Take the records of every seed of a cell. Raises BadInput where one is none of ours."""
        estimates: dict[str, dict[str, Any]] = {}
        for seed, folder in self.results.folders(cell).items():
            records = whole.read_records(folder / whole.RECORDS)
            curves = {}
            for protocol, way in records.groups():
                name, left_out = self._add_group(cell, seed, records, protocol, way)
                for measure in left_out:
                    found = self.results.estimate(Reading(cell, protocol, way, measure))  # type: ignore[arg-type]
                    estimates.setdefault(name, {})[measure] = as_plain(found) if found else None
                if AREA not in left_out and (curve := read_curve(folder, name)) is not None:
                    curves[name] = curve.tolist()
            self.facts["cells"][f"{cell.name}/{seed}"] = {
                **records.metadata,
                whole.WHOLE: whole.record_digest(folder / whole.RECORDS),
            }
            metrics = folder / METRICS
            if len(self.results.folders(cell)) == 1 and metrics.is_file():  # what one seed's images are worth
                self.facts["metrics"][f"{cell.name}/{seed}"] = json.loads(metrics.read_bytes())
            if curves:
                self.facts["curves"][f"{cell.name}/{seed}"] = curves
        if estimates:
            self.facts["estimates"][cell.name] = estimates

    def _add_group(
        self, cell: Cell, seed: int, records: whole.Records, protocol: str, way: int
    ) -> tuple[str, list[str]]:
        """Take the rows of one group; gives its name, and the measures that are not kept task by task."""
        name = whole.group_name(protocol, way)
        every = {measure: records.values(protocol, way, measure) for measure in whole.MEASURES}
        values = {measure: array for measure, array in every.items() if not np.isnan(array).all()}
        queries = self.queries(str(records.metadata[whole.TASKS].get(name, "")).split("[")[0])
        counts, covered = counted(values, queries)
        others = {measure: array for measure, array in values.items() if measure not in covered}
        # What counts would give though the record has not, or has otherwise.
        exceptions = restored(counts, queries).keys() - covered
        kept = {
            measure: array
            for measure, array in others.items()
            if measure in exceptions or self.wanted(Reading(cell, protocol, way, measure))  # type: ignore[arg-type]
        }
        kept |= {measure: every[measure] for measure in exceptions - kept.keys()}
        self.groups.append(Group(cell.name, seed, protocol, way, len(every["acc"]), queries))
        self.parts.append(
            {f"{COUNT}{measure}": array for measure, array in relative(counts).items()}
            | {f"{VALUE}{measure}": array for measure, array in kept.items()}
        )
        return name, [measure for measure in others if measure not in kept]

    def write(self, folder: Path) -> None:
        """Write both files. Equal records give equal bytes."""
        names = sorted({name for part in self.parts for name in part})
        kinds = {name: pa.int32() if name.startswith(COUNT) else pa.float32() for name in names}
        columns = [
            pa.chunked_array(
                [
                    pa.array(part[name], kind) if name in part else pa.nulls(group.tasks, kind)
                    for group, part in zip(self.groups, self.parts, strict=True)
                ],
                kind,
            )
            for name, kind in kinds.items()
        ]
        with whole_file(folder / VALUES) as partial:
            pq.write_table(
                pa.table(columns, names=names),
                partial,
                compression="zstd",
                compression_level=19,
                use_dictionary=False,
                # The first bytes of all numbers, then the second ones …: most of a count's four are zero.
                column_encoding=dict.fromkeys(names, "BYTE_STREAM_SPLIT"),
                write_statistics=False,
            )
        facts = {"groups": [astuple(group) for group in self.groups], **self.facts}
        with whole_file(folder / FACTS) as partial:
            partial.write_text(json.dumps(facts, sort_keys=True, separators=(",", ":")) + "\n", encoding="utf-8")


def restore_records(edition: Path, results: Path, origins: Mapping[str, Any]) -> None:
    """Write the records of an edition as folders that `Results` reads; `origins` are by the folder of the record.

    Raises BadInput where the edition's files are not records.
    """
    try:
        facts = json.loads((edition / FACTS).read_bytes())
        groups = [Group(*each) for each in facts["groups"]]
        table = pq.read_table(edition / VALUES).combine_chunks()
        if sum(group.tasks for group in groups) != table.num_rows:
            raise ValueError(f"it has {table.num_rows} rows, {FACTS} speaks of others")
        columns = _by_record(groups, table)
        cells, curves, estimates, metrics = (facts[name] for name in ("cells", "curves", "estimates", "metrics"))
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
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
    for group, rows in zip(groups, _slices(groups, table), strict=True):
        found = restored(absolute(_columns(rows, COUNT)), group.queries) | _columns(rows, VALUE)
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
