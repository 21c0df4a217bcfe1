"""What can be compared: records, the numbers that the paper prints, and tables of somebody else's."""

from collections.abc import Mapping, Sequence
from math import nan
from pathlib import Path

import numpy as np
import pandas as pd

from repro.editions.foreign_tables import COMPARED, read_table
from repro.errors import BadInput
from repro.report.layout import TABLES
from repro.results.intervals import Mean, Values, estimate
from repro.results.published import read_published
from repro.results.records import group_name
from repro.results.store import Cell, Reading, Replicate, Results, Sample, kind_of_tasks

SHOWN = ("hm", "cal_hm", "acc", "delta", "ausuc", "map_hm", "s_s", "u_u", "s_su", "u_su", "syn_s", "proto_s", "many_s")


class RecordsSide:
    """Records of some cells, whole or as an edition keeps them."""

    def __init__(self, name: str, results: Results, cells: Sequence[Cell]) -> None:
        self.name, self.results, self.cells = name, results, cells

    def readings(self) -> list[Reading]:
        return [
            Reading(cell, protocol, way, measure)
            for cell in self.cells
            if (records := self.results.cell(cell))
            for protocol in ("gfsl", "fsl", "seen")
            for way in records.ways(protocol)
            for measure in SHOWN
            if self.mean(Reading(cell, protocol, way, measure))
        ]

    def mean(self, reading: Reading) -> Mean | None:
        return self.results.estimate(reading)

    def sample(self, reading: Reading) -> Sample | None:
        return self.results.sample(reading)


class NumbersSide:
    """Means with intervals, nothing behind them; `samples` are those that came task by task."""

    def __init__(self, name: str, numbers: Mapping[Reading, Mean], samples: Mapping[Reading, Sample]) -> None:
        self.name, self.numbers, self.samples = name, numbers, samples

    def readings(self) -> list[Reading]:
        return list(self.numbers)

    def mean(self, reading: Reading) -> Mean | None:
        return self.numbers.get(reading)

    def sample(self, reading: Reading) -> Sample | None:
        return self.samples.get(reading)


def published_side(file: Path, unseen: Mapping[str, int]) -> NumbersSide:
    """What the paper's tables print; `unseen` says how many ways "all" is on each dataset, others are left out."""
    published = read_published(file)
    numbers: dict[Reading, Mean] = {}
    for table in TABLES:
        for row in table.rows:
            for column in table.columns if table.key in published and table.dataset in unseen else ():
                number, reading = published[table.key].number(row.key, column.key), table.reading(row, column)
                if number and reading:
                    way = unseen[table.dataset] if reading.way == "all" else reading.way
                    place = Reading(reading.cell, reading.protocol, way, reading.measure)
                    interval = nan if number.interval is None else number.interval
                    numbers.setdefault(place, Mean(number.value, interval, 0))
    return NumbersSide("published", numbers, {})


def table_side(file: Path, cells: Sequence[Cell]) -> NumbersSide:
    """Somebody's CSV or Parquet file: means, or values task by task with the digest of their list in `tasks`.

    Cells are named as in paper/grid.yaml; `protocol` (gfsl unless given) and `seed` (0) are further columns. Raises
    BadInput for anything else.
    """
    table, by_task = read_table(file)
    named = {cell.name: cell for cell in cells}
    if unknown := sorted(set(table["cell"]) - named.keys()):
        raise BadInput(
            f"{file}: names the cell {unknown[0]:.100}, expected those of paper/grid.yaml such as {next(iter(named))}"
        )
    return _by_task(file, table, named) if by_task else _means(file, table, named)


def _means(file: Path, table: pd.DataFrame, named: Mapping[str, Cell]) -> NumbersSide:
    numbers = {}
    for row in table.to_dict("records"):
        reading = Reading(named[row["cell"]], row["protocol"], row["way"], row["measure"])
        numbers[reading] = Mean(float(row["mean"]), float(row["interval"]), 0)
    return NumbersSide(file.name, numbers, {})


def _by_task(file: Path, table: pd.DataFrame, named: Mapping[str, Cell]) -> NumbersSide:
    measures = [name for name in COMPARED if name in table.columns]
    seeds: dict[Reading, dict[int, Replicate]] = {}
    for (cell, protocol, way, seed), rows in table.groupby(["cell", "protocol", "way", "seed"], sort=False):
        in_order = rows.sort_values("task", kind="stable")
        for measure in measures:
            values = in_order[measure].to_numpy(np.float64)
            if np.isnan(values).any():
                continue
            reading = Reading(named[cell], protocol, int(way), measure)
            group, digest = group_name(protocol, int(way)), str(in_order["tasks"].iloc[0]).split("[")[0]
            replicate = Replicate(values, f"{kind_of_tasks(reading.cell, int(seed), group)}/{digest}")
            seeds.setdefault(reading, {})[int(seed)] = replicate
    samples = {reading: Sample(by_seed) for reading, by_seed in seeds.items()}
    numbers = {
        reading: estimate([[Values(each.values)] for each in sample.seeds.values()])
        for reading, sample in samples.items()
    }
    return NumbersSide(file.name, numbers, samples)
