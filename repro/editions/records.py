"""The records of all cells of an edition in one small file.

`records.parquet` holds what a table, figure or claim reads task by task, as counts of right queries where these say it
all. `records.json.gz` says which rows are whose and what every record said of itself; of the remaining measures it
holds means with both intervals, and of the curves those whose areas are read.
"""

import gzip
import json
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from repro.editions.columns import behind, counted, relative, restored
from repro.editions.estimates import read_estimates
from repro.editions.groups import AREA, COUNT, FACTS, METRICS, VALUE, VALUES, Group, SharedTasks
from repro.files import whole_file
from repro.results import records as whole
from repro.results.cell_records import read_curve
from repro.results.kept_estimates import as_plain
from repro.results.store import Cell, Reading, Results


class Keeping:
    """Collects the records of an edition, cell by cell; `wanted` says what is kept task by task.

    `queries` gives how many queries of each kind the tasks of a list, named by its digest, have.
    """

    def __init__(self, results: Results, wanted: Callable[[Reading], bool], queries: Callable[[str], int]) -> None:
        self.results, self.wanted, self.queries = results, wanted, queries
        self.groups: list[Group] = []
        self._shared = SharedTasks()
        self.parts: list[dict[str, np.ndarray]] = []
        self.facts: dict[str, dict[str, Any]] = {"cells": {}, "curves": {}, "estimates": {}, "metrics": {}}

    def add(self, cell: Cell) -> None:
        """Take the records of every seed of a cell. Raises BadInput where one is none of ours."""
        estimates = read_estimates(self.results.folder / cell.name)  # of parts that are joined
        for seed, folder in self.results.folders(cell).items():
            records = whole.read_records(folder / whole.RECORDS)
            curves = {}
            for protocol, way in records.groups():
                name, left_out = self._add_group(cell, seed, records, protocol, way)
                for measure in left_out:
                    found = self.results.estimate(Reading(cell, protocol, way, measure))
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
        wanted = {measure for measure in values if self.wanted(Reading(cell, protocol, way, measure))}
        counts, covered = counted(values, queries)
        counts = {measure: array for measure, array in counts.items() if measure in behind(wanted)}
        given = restored(counts, queries).keys()
        covered &= given
        others = {measure: array for measure, array in values.items() if measure not in covered}
        # What counts would give though the record has not, or has otherwise.
        exceptions = given - covered
        kept = {measure: array for measure, array in others.items() if measure in exceptions or measure in wanted}
        kept |= {measure: every[measure] for measure in exceptions - kept.keys()}
        group = Group(cell.name, seed, protocol, way, len(every["acc"]), queries)
        self.groups.append(group)
        self.parts.append(
            {f"{COUNT}{measure}": array for measure, array in relative(self._shared.less_joint(group, counts)).items()}
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
                compression="brotli",  # a sixth less than zstd at its best
                compression_level=11,
                use_dictionary=False,
                # The first bytes of all numbers, then the second ones …: most of a count's four are zero.
                column_encoding=dict.fromkeys(names, "BYTE_STREAM_SPLIT"),
                write_statistics=False,
            )
        facts = {"groups": [astuple(group) for group in self.groups], **self.facts}
        with whole_file(folder / FACTS) as partial:
            text = json.dumps(facts, sort_keys=True, separators=(",", ":")) + "\n"
            partial.write_bytes(gzip.compress(text.encode(), mtime=0))
