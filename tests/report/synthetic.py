"""A small record set written with the real schema: what evaluation would leave behind, with means we choose."""

import hashlib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from repro.files import seal, sha256
from repro.report.needs import required_cells
from repro.results.origins import ORIGIN
from repro.results.records import KEYS, MEASURES, read_records, summarise, write_json, write_records
from repro.results.store import Cell

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


def write_cell(folder: Path, cell: Cell, groups: Collection[tuple[str, int]], values: Values, seed: int = 0) -> None:
    """Write one cell as evaluation does: tasks.parquet, metrics.json and curve.json."""
    columns: dict[str, list[np.ndarray]] = {name: [] for name in (*KEYS, *MEASURES)}
    for protocol, way in groups:
        measured = {name: values(cell, protocol, way, name) for name in OF_PROTOCOL[protocol]}
        tasks = len(next(iter(measured.values())))
        columns["protocol"].append(np.full(tasks, protocol, dtype=object))
        columns["way"].append(np.full(tasks, way, dtype=np.int32))
        columns["task"].append(np.arange(tasks, dtype=np.int32))
        for name in MEASURES:
            columns[name].append(measured.get(name, np.full(tasks, np.nan)))
    metadata = {
        "cell": cell.name,
        "tasks": {f"{protocol}_{way}way": f"list-{cell.dataset}-{cell.shot}-{way}-{seed}" for protocol, way in groups},
    }
    place = folder / cell.name / str(seed)
    write_records(place / "tasks.parquet", {name: np.concatenate(parts) for name, parts in columns.items()}, metadata)
    write_json(place / "metrics.json", summarise(read_records(place / "tasks.parquet")))
    unseen = np.linspace(0, 100, 21)
    curve = np.stack([unseen, 100 - unseen**2 / 100], axis=1).tolist()
    write_json(place / "curve.json", {f"{protocol}_{way}way": curve for protocol, way in groups if protocol == "gfsl"})
    write_json(place / ORIGIN, origin_of(cell, sha256(place / "tasks.parquet")))
    seal(place, "tasks.parquet", "metrics.json", "curve.json", ORIGIN)


def origin_of(cell: Cell, record: str) -> dict[str, Any]:
    """What the stages would write: evaluation, training, pre-training, tasks and dataset."""

    def step(stage: str, name: str, output: str = "", **inputs: Any) -> dict[str, Any]:
        hashes = {key: hashlib.sha256(f"{key} {stage} {name}".encode()).hexdigest() for key in ("code", "output")}
        settings = {"stage_of": name, "lr": 0.1}
        return (
            {"stage": stage, "cell": name, "seed": 0, "settings": settings, "inputs": inputs}
            | hashes
            | ({"output": output} if output else {})
        )

    dataset = step("splits", cell.dataset)
    pretrained = step("pretrain", f"{cell.dataset}-linear", dataset=dataset)
    model = step("train", cell.name, pretrained=pretrained, dataset=dataset)
    tasks = step("episodes", cell.dataset, dataset=dataset)
    return step("evaluate", cell.name, record, model=model, tasks=tasks, dataset=dataset)


def write_results(
    folder: Path, values: Values, skip: Callable[[Cell], bool] = lambda _: False, rows: Sequence[str] = ()
) -> None:
    """Write every cell that the paper needs with these rows, except those skipped."""
    for need in required_cells(rows):
        if not skip(need.cell):
            whole = {"all": UNSEEN[need.cell.dataset], "any": SEEN[need.cell.dataset]}
            groups = {(protocol, whole[way] if isinstance(way, str) else way) for protocol, way in need.protocols}
            write_cell(folder, need.cell, sorted(groups), values)
