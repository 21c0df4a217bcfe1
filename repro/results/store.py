"""Which number of which cell: names for per-task values, and a store that reads only the columns it is asked for."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from repro.errors import BadInput, one_line
from repro.files import sealed
from repro.results.intervals import Mean, mean_interval
from repro.results.records import RECORDS, TASKS, group_name

# A number of unseen classes; "all" of the dataset at hand; "any" where a protocol has one row group only.
Way = int | Literal["all", "any"]


@dataclass(frozen=True, order=True)
class Cell:
    """One trained and evaluated method; a variant is an ablation of it."""

    dataset: str
    method: str
    shot: int
    variant: str = ""

    @property
    def name(self) -> str:
        """The key of the cell in paper/grid.yaml and its folder below results/."""
        name = f"{self.dataset}-{self.method}-{self.shot}shot"
        return f"{name}-{self.variant}" if self.variant else name


@dataclass(frozen=True)
class Reading:
    """One measure of one cell under one protocol: a value per task."""

    cell: Cell
    protocol: Literal["gfsl", "fsl", "seen"]
    way: Way
    measure: str


@dataclass(frozen=True)
class Sample:
    """Per-task values in task order; samples with equal `tasks` follow one task list, as far as each goes."""

    values: np.ndarray
    tasks: str


class Results:
    """The records below one folder. A cell, protocol, way or measure that is not there reads as None."""

    def __init__(self, folder: Path, unseen_classes: Mapping[str, int]) -> None:
        """`unseen_classes` says how many ways "all" is on each dataset."""
        self.folder, self.unseen_classes = folder, unseen_classes
        self._cells: dict[str, CellRecords | None] = {}
        self._lists: dict[str, tuple[str, str]] = {}  # of each kind of task: its list, and the first cell to name it

    def sample(self, reading: Reading) -> Sample | None:
        """The per-task values, or None where any of them was not measured.

        Raises BadInput where the cell followed another task list than a cell read before it: tasks of one dataset,
        shot and way are one list, or nothing could be paired.
        """
        records = self.cell(reading.cell)
        way: int | Literal["any"] | None = (
            "any" if reading.way == "any" else self.ways(reading.cell.dataset, reading.way)
        )
        if records is None or way is None:
            return None
        values = records.values(reading.protocol, way, reading.measure)
        if values is None or np.isnan(values).any():
            return None
        return Sample(values, self._one_list(reading, records, way))

    def _one_list(self, reading: Reading, records: "CellRecords", way: int | Literal["any"]) -> str:
        group, digest = records.task_list(reading.protocol, way)
        kind = f"{reading.cell.dataset}/{reading.cell.shot}/{group.removeprefix('g')}"  # FSL and GFSL share a list
        known, cell = self._lists.setdefault(kind, (digest, reading.cell.name))
        if not digest or digest != known:
            other = f", {cell} on {known or 'nothing'}" if cell != reading.cell.name else ""
            message = f"{records.file}: {group} was measured on task list {digest or 'nothing'}{other}"
            raise BadInput(f"{message}; expected one list for all cells: evaluate them again")
        return f"{kind}/{digest}"

    def estimate(self, reading: Reading) -> Mean | None:
        """Mean and interval over tasks, or None where the reading was not measured."""
        sample = self.sample(reading)
        return None if sample is None else mean_interval(sample.values)

    def ways(self, dataset: str, way: Way) -> int | None:
        """How many ways `way` is on a dataset; None where that is not known."""
        return self.unseen_classes.get(dataset) if way == "all" else way if isinstance(way, int) else None

    def curve(self, cell: Cell, way: Way) -> tuple[np.ndarray, np.ndarray] | None:
        """Unseen and seen accuracy along the mean seen-unseen curve, in percent; None where there is none."""
        file = self.folder / cell.name / "curve.json"
        if not file.is_file():
            return None
        sealed(file.parent, file.name, remedy=_remedy(file.parent))
        try:
            ways = self.ways(cell.dataset, way)
            points = None if ways is None else json.loads(file.read_text()).get(group_name("gfsl", ways))
            return None if points is None else (np.asarray(points, float)[:, 0], np.asarray(points, float)[:, 1])
        except (ValueError, AttributeError, IndexError, TypeError) as error:
            raise BadInput(f"{file}: not a seen-unseen curve ({error}); {_remedy(file.parent)}") from error

    def cell(self, cell: Cell) -> "CellRecords | None":
        """The records of one cell, or None where it has not been evaluated."""
        if cell.name not in self._cells:
            folder = self.folder / cell.name
            self._cells[cell.name] = CellRecords(folder) if (folder / RECORDS).is_file() else None
        return self._cells[cell.name]


class CellRecords:
    """One `tasks.parquet`, opened once; a column is read when first asked for."""

    def __init__(self, folder: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.folder, self.file = folder, folder / RECORDS
        try:
            self._parquet = pq.ParquetFile(self.file, memory_map=True)
        except (pa.ArrowException, OSError) as error:
            raise BadInput(
                f"{self.file}: not a file of per-task records ({one_line(error)}); {_remedy(folder)}"
            ) from error
        sealed(folder, RECORDS, remedy=_remedy(folder))
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
            self._columns[measure] = self._parquet.read([measure])[measure].to_numpy().astype(np.float64)
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


def _remedy(folder: Path) -> str:
    return f"evaluate {folder.name} again (`dvc repro` sees what is stale)"


def _loads(value: bytes) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value.decode(errors="replace")
