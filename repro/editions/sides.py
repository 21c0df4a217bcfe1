"""What can be compared: records, the numbers that the paper prints, and tables of somebody else's."""

from collections.abc import Mapping, Sequence
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from repro.errors import BadInput, one_line
from repro.report.layout import TABLES
from repro.results.intervals import Mean, Values, estimate
from repro.results.published import read_published
from repro.results.records import MEASURES, group_name
from repro.results.store import Cell, Reading, Replicate, Results, Sample, kind_of_tasks

SHOWN = ("hm", "cal_hm", "acc", "delta", "ausuc", "map_hm", "s_s", "u_u", "s_su", "u_su", "syn_s", "proto_s", "many_s")
MEANS, BY_TASK = ("cell", "way", "measure", "mean"), ("cell", "way", "task", "tasks")
FORMS = f"columns {', '.join(MEANS)} (and interval), or {', '.join(BY_TASK)} and a column per measure"


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
    try:
        table = pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise BadInput(f"{file}: not a table ({one_line(error)}), expected CSV or Parquet with {FORMS}") from error
    named = {cell.name: cell for cell in cells}
    for name, usual in (("protocol", "gfsl"), ("seed", 0), ("interval", nan)):
        table[name] = table[name] if name in table else usual
    by_task = set(BY_TASK) <= set(table.columns)
    if not by_task and not set(MEANS) <= set(table.columns):
        raise BadInput(f"{file}: has the columns {', '.join(map(str, table.columns))}, expected {FORMS}")
    if unknown := sorted(set(table["cell"].astype(str)) - named.keys()):
        raise BadInput(
            f"{file}: names the cell {unknown[0]}, expected those of paper/grid.yaml such as {next(iter(named))}"
        )
    try:
        return _by_task(file, table, named) if by_task else _means(file, table, named)
    except (ValueError, TypeError) as error:
        raise BadInput(f"{file}: has a value that is no number ({one_line(error)}), expected {FORMS}") from error


def _means(file: Path, table: pd.DataFrame, named: Mapping[str, Cell]) -> NumbersSide:
    numbers = {}
    for row in table.to_dict("records"):
        reading = _reading(named[row["cell"]], row["protocol"], row["way"], row["measure"], file)
        numbers[reading] = Mean(float(row["mean"]), float(row["interval"]), 0)
    return NumbersSide(file.name, numbers, {})


def _by_task(file: Path, table: pd.DataFrame, named: Mapping[str, Cell]) -> NumbersSide:
    measures = [name for name in MEASURES if name in table.columns]
    seeds: dict[Reading, dict[int, Replicate]] = {}
    for (cell, protocol, way, seed), rows in table.groupby(["cell", "protocol", "way", "seed"], sort=False):
        in_order = rows.sort_values("task", kind="stable")
        for measure in measures:
            values = in_order[measure].to_numpy(np.float64)
            if np.isnan(values).any():
                continue
            reading = _reading(named[cell], protocol, way, measure, file)
            group, digest = group_name(protocol, int(way)), str(in_order["tasks"].iloc[0]).split("[")[0]
            replicate = Replicate(values, f"{kind_of_tasks(reading.cell, int(seed), group)}/{digest}")
            seeds.setdefault(reading, {})[int(seed)] = replicate
    samples = {reading: Sample(by_seed) for reading, by_seed in seeds.items()}
    numbers = {
        reading: estimate([[Values(each.values)] for each in sample.seeds.values()])
        for reading, sample in samples.items()
    }
    return NumbersSide(file.name, numbers, samples)


def _reading(cell: Cell, protocol: Any, way: Any, measure: Any, file: Path) -> Reading:
    if measure not in MEASURES or protocol not in ("gfsl", "fsl", "seen"):
        message = f"{file}: has the measure {measure!r} of protocol {protocol!r}"
        raise BadInput(f"{message}, expected gfsl, fsl or seen and one of {', '.join(MEASURES)}")
    return Reading(cell, protocol, int(way), str(measure))
