"""One cell's records of one seed, read as far as they are asked for."""

import json
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from repro.errors import BadInput, one_line
from repro.files import MAKE_AGAIN, check_seal
from repro.results.records import RECORDS, TASKS, group_name, require_possible


class CellRecords:
    """One `tasks.parquet`, opened once; a column is read when first asked for."""

    def __init__(self, folder: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.folder, self.file = folder, folder / RECORDS
        try:
            self._parquet = pq.ParquetFile(self.file, memory_map=True)
        except (pa.ArrowException, OSError) as error:
            raise BadInput(f"{self.file}: not a file of per-task records ({one_line(error)}); {MAKE_AGAIN}") from error
        check_seal(folder, RECORDS)
        self._columns: dict[str, np.ndarray] = {}

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """What the evaluation wrote about itself into the file's schema."""
        return {key.decode(): _loads(value) for key, value in (self._parquet.schema_arrow.metadata or {}).items()}

    @cached_property
    def _groups(self) -> dict[tuple[str, int], np.ndarray]:
        """Rows of each protocol and way, in task order."""
        columns = self._parquet.read(["protocol", "way", "task"])
        names = columns["protocol"].combine_chunks().dictionary_encode()
        ways, tasks = columns["way"].to_numpy(), columns["task"].to_numpy()
        groups = {}
        for code, name in enumerate(names.dictionary.to_pylist()):
            of_protocol = names.indices.to_numpy() == code
            for way in np.unique(ways[of_protocol]).tolist():
                rows = np.flatnonzero(of_protocol & (ways == way))
                groups[name, way] = rows[np.argsort(tasks[rows], kind="stable")]
        return groups

    def ways(self, protocol: str) -> list[int]:
        """The ways that were evaluated under one protocol, ascending."""
        return sorted(way for name, way in self._groups if name == protocol)

    def values(self, protocol: str, way: int | Literal["any"], measure: str) -> np.ndarray | None:
        """Values in task order as float64, or None where protocol, way or measure are absent."""
        way = self._way(protocol, way)
        if (protocol, way) not in self._groups or measure not in self._parquet.schema_arrow.names:
            return None
        if measure not in self._columns:
            column = self._parquet.read([measure])[measure].to_numpy().astype(np.float64)
            require_possible(self.file, measure, column)
            self._columns[measure] = column
        return self._columns[measure][self._groups[protocol, way]]

    def task_list(self, protocol: str, way: int | Literal["any"]) -> tuple[str, str]:
        """A group's name and the task list it was measured on, "" where the file does not say.

        Cells that measured the first tasks of a list only name the same one.
        """
        group = group_name(protocol, self._way(protocol, way))
        lists = self.metadata.get(TASKS)
        return group, str(lists.get(group, "")).split("[")[0] if isinstance(lists, dict) else ""

    def _way(self, protocol: str, way: int | Literal["any"]) -> int:
        """The way that "any" stands for: the only one that there is, or -1."""
        ways = self.ways(protocol)
        return way if way != "any" else ways[0] if len(ways) == 1 else -1


def read_curve(folder: Path, group: str) -> np.ndarray | None:
    """Unseen and seen accuracy along the mean curve of a group (points × 2), None where there is none."""
    file = folder / "curve.json"
    if not file.is_file():
        return None
    check_seal(folder, file.name)
    try:
        points = json.loads(file.read_text()).get(group)
        return None if points is None else np.asarray(points, float)[:, :2]
    except (ValueError, AttributeError, IndexError, TypeError) as error:
        raise BadInput(f"{file}: not a seen-unseen curve ({error}); {MAKE_AGAIN}") from error


def _loads(value: bytes) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value.decode(errors="replace")
