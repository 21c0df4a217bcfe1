"""A small record set written with the real schema: what evaluation would leave behind, with means we choose."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from repro.report.needs import required_cells
from repro.results.store import Cell

MEASURES = (
    "acc s_s u_u s_su u_su hm delta ausuc ausuc_released map_hm map_s map_u cal_acc cal_s_su cal_u_su cal_hm "
    "conf_seen conf_unseen syn_s proto_s many_s"
).split()
OF_PROTOCOL = {
    "gfsl": MEASURES[:18],
    "fsl": ["u_u"],
    "seen": ["syn_s", "proto_s", "many_s"],
}
UNSEEN = {"mini": 20, "tiered": 60, "heterogeneous": 100, "office": 25}
SEEN = {"mini": 64, "tiered": 120, "heterogeneous": 100, "office": 25}

# (cell, protocol, way, measure) → per-task values
Values = Callable[[Cell, str, int, str], np.ndarray]


def noisy(tasks: int = 64, spread: float = 4.0) -> Values:
    """Methods differ by a constant, tasks share their difficulty: pairs are clear, single means are not."""

    def values(cell: Cell, protocol: str, way: int, measure: str) -> np.ndarray:
        difficulty = np.random.default_rng([way, cell.shot]).normal(0, spread, tasks)
        key = f"{cell.name}/{protocol}/{measure}".encode()
        own = np.random.default_rng(list(key)).normal(0, 0.5, tasks)
        level = 30 + sum(key) % 40 - way / 4
        return np.clip(level + difficulty + own, 0, 100)

    return values


def write_cell(folder: Path, cell: Cell, groups: Iterable[tuple[str, int]], values: Values) -> None:
    """Write one cell as evaluation does: tasks.parquet, curve.json and run.json."""
    columns: dict[str, list[np.ndarray]] = {name: [] for name in ("protocol", "way", "task", *MEASURES)}
    for protocol, way in groups:
        measured = {name: values(cell, protocol, way, name) for name in OF_PROTOCOL[protocol]}
        tasks = len(next(iter(measured.values())))
        columns["protocol"].append(np.full(tasks, protocol, dtype=object))
        columns["way"].append(np.full(tasks, way, dtype=np.int32))
        columns["task"].append(np.arange(tasks, dtype=np.int32))
        for name in MEASURES:
            columns[name].append(measured.get(name, np.full(tasks, np.nan)).astype(np.float32))
    table = pa.table({name: np.concatenate(parts) for name, parts in columns.items()})
    facts = {"cell": cell.name, "dataset": cell.dataset, "method": cell.method, "shot": cell.shot}
    place = folder / cell.name
    place.mkdir(parents=True)
    metadata = {key: json.dumps(value) for key, value in facts.items()}
    pq.write_table(table.replace_schema_metadata(metadata), place / "tasks.parquet")
    (place / "run.json").write_text(
        json.dumps({"run_id": "17", "git_commit": "abc1234", "params": {"shot": cell.shot}})
    )


def write_results(folder: Path, values: Values, skip: Callable[[Cell], bool] = lambda _: False) -> None:
    """Write every cell that the paper needs, except those skipped."""
    for need in required_cells():
        if not skip(need.cell):
            whole = {"all": UNSEEN[need.cell.dataset], "any": SEEN[need.cell.dataset]}
            groups = {(protocol, whole[way] if isinstance(way, str) else way) for protocol, way in need.protocols}
            write_cell(folder, need.cell, sorted(groups), values)
