"""A small record set written with the real schema: what evaluation would leave behind, with means we choose."""

import hashlib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from repro.files import seal, sha256
from repro.report.needs import required_cells
from repro.results.contents import TaskContents
from repro.results.counts import write_counts
from repro.results.origins import ORIGIN
from repro.results.records import KEYS, MEASURES, read_records, summarise, write_json, write_records
from repro.results.store import Cell

OF_PROTOCOL = {"gfsl": MEASURES[:18], "fsl": ["u_u", "sel_u_u"], "seen": ["syn_s", "proto_s", "many_s"]}
UNSEEN = {"mini": 20, "tiered": 60, "heterogeneous": 100, "office": 25}
VAL = 16
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
    """Write one seed of a cell as evaluation does."""
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
    ways = [way for protocol, way in groups if protocol == "gfsl"]
    if ways and cell.dataset in SEEN:
        write_counts(place, *counts_of(cell, ways))
    if cell.method != "mc_knn":
        steps = [f"{step},{2 / step:.4f},0.1,{30 + step if step % 20 == 0 else ''}" for step in range(1, 61)]
        (place / "training.csv").write_text("\n".join(["step,loss,lr,val_hm", *steps]) + "\n")
    seal(place)


def labels_of(dataset: str) -> np.ndarray:
    """Seen and unseen labels; those of validation classes lie between."""
    return np.concatenate([np.arange(SEEN[dataset]), SEEN[dataset] + VAL + np.arange(UNSEEN[dataset])])


def counts_of(cell: Cell, ways: Sequence[int]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Two images of each class, each asked for 100 times; the first class is always taken for the last one."""
    labels = labels_of(cell.dataset)
    right = 20 + (np.arange(len(labels)) * 7 + len(cell.method)) % 70
    right[0] = 0
    label = labels.repeat(2)
    shares = {name: right.repeat(2) for name in ("own", "joint", "calibrated")}
    images = {"image": np.arange(len(label)), "label": label, "asked": np.full(len(label), 100)} | shares
    counted = np.concatenate([2 * right, 200 - 2 * right])
    pairs = {"truth": np.tile(labels, 2), "predicted": np.concatenate([labels, np.roll(labels, 1)]), "count": counted}
    return _at_ways(images, ways), _at_ways({name: values[counted > 0] for name, values in pairs.items()}, ways)


def _at_ways(columns: dict[str, np.ndarray], ways: Sequence[int]) -> dict[str, np.ndarray]:
    rows = len(next(iter(columns.values())))
    return {"way": np.repeat(ways, rows)} | {name: np.tile(values, len(ways)) for name, values in columns.items()}


def contents_of(digest: str) -> TaskContents:
    """Tasks as `write_cell` names their lists: 200 queries of every class, in ten tasks that hold all of them."""
    dataset = digest.split("-")[1]
    labels = labels_of(dataset)
    unseen, seen = labels[SEEN[dataset] :], labels[: SEEN[dataset]]
    rows_WQ = 2 * np.arange(SEEN[dataset], len(labels))[:, None] + np.arange(20) % 2
    return TaskContents(
        np.tile(unseen, (10, 1)),
        np.tile(rows_WQ[:, :1], (10, 1, 1)),
        np.tile(rows_WQ, (10, 1, 1)),
        np.tile(2 * seen.repeat(20), (10, 1)),
    )


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
