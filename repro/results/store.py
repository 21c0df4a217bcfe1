"""Which number of which cell: names for per-task values, and a store that reads only the columns it is asked for."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from repro.errors import BadInput
from repro.results.cell_records import CellRecords, read_curve
from repro.results.contents import TaskContents
from repro.results.intervals import Mean, Values, estimate
from repro.results.kept_estimates import kept_estimate
from repro.results.records import group_name, replicates

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
    """One measure of one cell under one protocol (gfsl, fsl, seen, overlap and a number): a value per task."""

    cell: Cell
    protocol: str
    way: Way
    measure: str


@dataclass(frozen=True)
class Replicate:
    """Per-task values of one seed in task order; readings with equal `tasks` follow one list, as far as each goes."""

    values: np.ndarray
    tasks: str
    contents: TaskContents | None = None


@dataclass(frozen=True)
class Sample:
    """A reading's values by seed; `same_classes`: all seeds have the same classes and images."""

    seeds: Mapping[int, Replicate]
    same_classes: bool = False


def kind_of_tasks(cell: Cell, seed: int, group: str) -> str:
    """What all cells share a list of; FSL and GFSL do."""
    return f"{cell.dataset}/{seed}/{cell.shot}/{group.removeprefix('g')}"


class Results:
    """The records below one folder, `<cell>/<seed>/`. What was not measured reads as None."""

    def __init__(
        self,
        folder: Path,
        unseen_classes: Mapping[str, int],
        contents: Callable[[str], TaskContents | None] = lambda _: None,
        same_classes: bool = False,
    ) -> None:
        """`unseen_classes` says how many ways "all" is on each dataset.

        `contents` gives what the tasks of a list, named by its digest, are made of. `same_classes`: a seed draws no
        classes and images, as on given data with fixed splits.
        """
        self.folder, self.unseen_classes = folder, unseen_classes
        self.contents, self.same_classes = contents, same_classes
        self._cells: dict[str, dict[int, CellRecords]] = {}
        self._lists: dict[str, tuple[str, str]] = {}  # of each kind of task: its list, and the first cell to name it

    def sample(self, reading: Reading) -> Sample | None:
        """The per-task values of every seed that has all of them, or None where none has.

        Raises BadInput where the cell followed another task list than a cell read before it: tasks of one dataset,
        seed, shot and way are one list, or nothing could be paired.
        """
        way: int | Literal["any"] | None = (
            "any" if reading.way == "any" else self.ways(reading.cell.dataset, reading.way)
        )
        if way is None:
            return None
        seeds = {}
        for seed, records in self.replicates(reading.cell).items():
            values = records.values(reading.protocol, way, reading.measure)
            if values is not None and not np.isnan(values).any():
                kind, digest = self._one_list(reading, seed, records, way)
                contents = self.contents(digest)
                seeds[seed] = Replicate(values, f"{kind}/{digest}", contents.first(len(values)) if contents else None)
        return Sample(seeds, self.same_classes) if seeds else None

    def _one_list(
        self, reading: Reading, seed: int, records: CellRecords, way: int | Literal["any"]
    ) -> tuple[str, str]:
        """The kind of tasks (FSL and GFSL share a list) and the digest of their list."""
        group, digest = records.task_list(reading.protocol, way)
        kind = kind_of_tasks(reading.cell, seed, group)
        known, cell = self._lists.setdefault(kind, (digest, reading.cell.name))
        if not digest or digest != known:
            other = f", {cell} on {known or 'nothing'}" if cell != reading.cell.name else ""
            message = f"{records.file}: {group} was measured on task list {digest or 'nothing'}{other}"
            raise BadInput(f"{message}; expected one list for all cells: evaluate them again")
        return kind, digest

    def estimate(self, reading: Reading) -> Mean | None:
        """Mean over seeds with both intervals, or None where the reading was not measured."""
        sample = self.sample(reading)
        if sample is None:
            way = self.ways(reading.cell.dataset, reading.way)
            group = "" if way is None else group_name(reading.protocol, way)
            return kept_estimate(self.folder / reading.cell.name, group, reading.measure)
        replicates = [[Values(each.values, each.contents)] for each in sample.seeds.values()]
        return estimate(replicates, sample.same_classes)

    def ways(self, dataset: str, way: Way) -> int | None:
        """How many ways `way` is on a dataset; None where that is not known."""
        return self.unseen_classes.get(dataset) if way == "all" else way if isinstance(way, int) else None

    def curve(self, cell: Cell, way: Way) -> tuple[np.ndarray, np.ndarray] | None:
        """Unseen and seen accuracy along the mean curve of all seeds, in percent; None where there is none."""
        ways = self.ways(cell.dataset, way)
        if ways is None:
            return None
        group = group_name("gfsl", ways)
        found = [read_curve(folder, group) for folder in self.folders(cell).values()]
        curves = [points for points in found if points is not None]
        # Every curve has its seen accuracy at the same unseen accuracies.
        return (curves[0][:, 0], np.mean([points[:, 1] for points in curves], axis=0)) if curves else None

    def cell(self, cell: Cell) -> CellRecords | None:
        """The records of the first seed, or None where the cell has not been evaluated."""
        return next(iter(self.replicates(cell).values()), None)

    def has(self, cell: Cell) -> bool:
        """Whether the cell has been evaluated."""
        return bool(self.folders(cell))

    def replicates(self, cell: Cell) -> dict[int, CellRecords]:
        """The records of one cell by seed."""
        if cell.name not in self._cells:
            self._cells[cell.name] = {seed: CellRecords(folder) for seed, folder in self.folders(cell).items()}
        return self._cells[cell.name]

    def cells(self) -> list[Cell]:
        """Every cell that has been evaluated, a user's own too, by name."""
        return [_cell(folder) for folder in sorted(self.folder.glob("*")) if replicates(folder)]

    def folders(self, cell: Cell) -> dict[int, Path]:
        """Where the records of one cell lie, by seed."""
        return replicates(self.folder / cell.name)


def _cell(folder: Path) -> Cell:
    """The cell that a folder is named after: dataset-method-Kshot, and a variant where it has one."""
    place = re.fullmatch(r"(.+)-([^-]+)-(\d+)shot(?:-(.+))?", folder.name)
    if place is None:
        message = f"{folder}: a cell is called dataset-method-1shot, with -variant after it where it is an ablation"
        raise BadInput(f"{message}; correct its name in paper/grid.yaml, and remove the folder")
    dataset, method, shot, variant = place.groups()
    return Cell(dataset, method, int(shot), variant or "")
