"""Which number of which cell: names for per-task values, and a store that reads only the columns it is asked for."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from repro.errors import BadInput

# A number of unseen classes; "all" of the dataset at hand; "any" where a protocol has one row group only.
Way = int | Literal["all", "any"]

INTERVAL_95 = 1.96


@dataclass(frozen=True, order=True)
class Cell:
    """One trained and evaluated method; a variant is an ablation of it."""

    dataset: str
    method: str
    shot: int
    variant: str = ""

    @property
    def name(self) -> str:
        """The key of the cell in params.yaml and its folder below results/."""
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
    """Per-task values in task order; samples with the same `tasks` were measured on the same tasks."""

    values: np.ndarray
    tasks: str


@dataclass(frozen=True)
class Estimate:
    """Mean over tasks and the half-width of its 95 % interval (1.96·std/√n)."""

    mean: float
    interval: float
    tasks: int


class Results:
    """The records below one folder. A cell, protocol, way or measure that is not there reads as None."""

    def __init__(self, folder: Path, unseen_classes: Mapping[str, int]) -> None:
        """`unseen_classes` says how many ways "all" is on each dataset."""
        self.folder, self.unseen_classes = folder, unseen_classes
        self._cells: dict[str, CellRecords | None] = {}

    def sample(self, reading: Reading) -> Sample | None:
        """The per-task values, or None where any of them was not measured."""
        records = self.cell(reading.cell)
        way = self.unseen_classes.get(reading.cell.dataset) if reading.way == "all" else reading.way
        if records is None or way is None:
            return None
        values = records.values(reading.protocol, way, reading.measure)
        if values is None or np.isnan(values).any():
            return None
        tasks = records.tasks_digest(reading.protocol, way)
        return Sample(values, f"{reading.cell.dataset}/{reading.cell.shot}/{way}/{tasks}")

    def estimate(self, reading: Reading) -> Estimate | None:
        """Mean and interval over tasks, or None where the reading was not measured."""
        sample = self.sample(reading)
        if sample is None:
            return None
        count = len(sample.values)
        interval = INTERVAL_95 * float(sample.values.std()) / count**0.5
        return Estimate(float(sample.values.mean()), interval, count)

    def cell(self, cell: Cell) -> "CellRecords | None":
        """The records of one cell, or None where it has not been evaluated."""
        if cell.name not in self._cells:
            folder = self.folder / cell.name
            self._cells[cell.name] = CellRecords(folder) if (folder / "tasks.parquet").is_file() else None
        return self._cells[cell.name]


class CellRecords:
    """One `tasks.parquet`, opened once; a column is read when first asked for."""

    def __init__(self, folder: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.folder, self.file = folder, folder / "tasks.parquet"
        try:
            self._parquet = pq.ParquetFile(self.file, memory_map=True)
        except (pa.ArrowException, OSError) as error:
            message = (
                f"{self.file}: not a file of per-task records ({error}); delete {folder} and evaluate the cell again"
            )
            raise BadInput(message) from error
        self._columns: dict[str, np.ndarray] = {}

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """What the evaluation wrote about itself into the file's schema."""
        return {key.decode(): _loads(value) for key, value in (self._parquet.schema_arrow.metadata or {}).items()}

    @cached_property
    def _groups(self) -> dict[tuple[str, int], np.ndarray]:
        """Rows of each protocol and way, in task order."""
        columns = self._parquet.read(["protocol", "way", "task"])
        protocols = np.asarray(columns["protocol"].to_pylist())
        ways, tasks = columns["way"].to_numpy(), columns["task"].to_numpy()
        groups = {}
        for protocol in np.unique(protocols):
            for way in np.unique(ways[protocols == protocol]):
                rows = np.flatnonzero((protocols == protocol) & (ways == way))
                groups[str(protocol), int(way)] = rows[np.argsort(tasks[rows], kind="stable")]
        return groups

    def ways(self, protocol: str) -> list[int]:
        """The ways that were evaluated under one protocol, ascending."""
        return sorted(way for name, way in self._groups if name == protocol)

    def values(self, protocol: str, way: int | Literal["any"], measure: str) -> np.ndarray | None:
        """Values in task order as float64, or None where protocol, way or measure are absent."""
        ways = self.ways(protocol)
        if way == "any":
            way = ways[0] if len(ways) == 1 else -1
        if way not in ways or measure not in self._parquet.schema_arrow.names:
            return None
        if measure not in self._columns:
            self._columns[measure] = self._parquet.read([measure])[measure].to_numpy().astype(np.float64)
        return self._columns[measure][self._groups[protocol, way]]

    def tasks_digest(self, protocol: str, way: int | Literal["any"]) -> str:
        """Which stored tasks a group was measured on."""
        return str(self.metadata.get("tasks", {}).get(f"{protocol}_{way}way", ""))


def _loads(value: bytes) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value.decode(errors="replace")
