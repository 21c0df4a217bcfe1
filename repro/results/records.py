"""Per-task values on disk: one Parquet file per cell, a row per protocol, way and task, and a small metrics.json.

Accuracies are in percent, float32; a measure that a protocol does not have is NaN. The schema's metadata says which
cell, model and task lists the rows belong to, each entry as JSON.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from repro.errors import BadInput, one_line
from repro.files import MAKE_AGAIN, sha256, whole_file
from repro.results.contents import TaskContents
from repro.results.intervals import Values, estimate

KEYS = {"protocol": pa.string(), "way": pa.int32(), "task": pa.int32()}
MEASURES = (
    *("acc", "s_s", "u_u", "s_su", "u_su", "hm", "delta", "ausuc", "ausuc_released", "map_hm", "map_s", "map_u"),
    *("cal_acc", "cal_s_su", "cal_u_su", "cal_hm", "conf_seen", "conf_unseen", "conf_ratio"),
    *("syn_s", "proto_s", "many_s", "sel_u_u"),
)
RECORDS = "tasks.parquet"  # the file's name in the folder of its cell
CURVES = "curve.json"  # the mean seen-unseen curves beside it, by group
TRAINING = "training.csv"  # loss and validation of the training that made the model, where it had one
SHOWN = (  # the measures that metrics.json holds
    *("hm", "acc", "ausuc", "delta", "cal_hm", "s_s", "u_u", "s_su", "u_su", "map_hm", "conf_ratio"),
    *("syn_s", "proto_s", "many_s", "sel_u_u"),
)
TASKS = "tasks"  # the metadata entry that names the task list of every group
PERCENT = 100.001  # in single precision
UNBOUNDED = ("conf_seen", "conf_unseen", "conf_ratio")
WHOLE = "whole"  # the metadata entry of a part of a record, as editions keep it: the content hash of the whole
Value = TypeVar("Value")


def replicates(folder: Path) -> dict[int, Path]:
    """The folders of a cell that hold records, by seed."""
    seeds = sorted(int(file.parent.name) for file in folder.glob(f"*/{RECORDS}") if file.parent.name.isdecimal())
    return {seed: folder / str(seed) for seed in seeds}


def group_name(protocol: str, way: int) -> str:
    """How files name the tasks of one protocol and way."""
    return f"{protocol}_{way}way"


def by_name(values: Mapping[tuple[str, int], Value]) -> dict[str, Value]:
    """Values of groups as files keep them."""
    return {group_name(*group): value for group, value in values.items()}


@dataclass(frozen=True)
class Records:
    """The rows of one cell as columns, and what the file says about itself."""

    columns: dict[str, np.ndarray]
    metadata: dict[str, Any]

    def groups(self) -> list[tuple[str, int]]:
        """Every protocol and way that was measured, in the order of the file."""
        return list(dict.fromkeys(zip(self.columns["protocol"].tolist(), self.columns["way"].tolist(), strict=True)))

    def values(self, protocol: str, way: int, measure: str) -> np.ndarray:
        """Values of one measure in task order (the file's order)."""
        rows = (self.columns["protocol"] == protocol) & (self.columns["way"] == way)
        return self.columns[measure][rows]


def write_records(path: Path, columns: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> None:
    """Write rows as Parquet; measures not given become NaN columns. Equal content gives equal bytes.

    `metadata` needs `tasks`: the name of the task list of every group.
    """
    unknown = columns.keys() - KEYS.keys() - set(MEASURES)
    if unknown:
        raise BadInput(f"{path}: unknown measures {sorted(unknown)}; expected some of {', '.join(MEASURES)}")
    rows = len(columns["task"])
    nothing = np.full(rows, np.nan, np.float32)
    arrays = [pa.array(columns[name], kind) for name, kind in KEYS.items()]
    arrays += [pa.array(np.asarray(columns.get(name, nothing), np.float32)) for name in MEASURES]
    table = pa.Table.from_arrays(arrays, schema=_schema(metadata))
    with whole_file(path) as partial:
        pq.write_table(table, partial, compression="zstd")


def read_records(path: Path) -> Records:
    """Read one cell's rows; raises BadInput where the file is none of ours."""
    try:
        table = pq.read_table(path)
        metadata = {key.decode(): json.loads(value) for key, value in (table.schema.metadata or {}).items()}
    except (OSError, pa.ArrowException, ValueError) as error:
        raise BadInput(
            f"{path}: not a file of per-task records ({one_line(error)}); evaluate the cell again"
        ) from error
    if not table.schema.equals(_schema({})) or not isinstance(metadata.get(TASKS), dict):
        raise BadInput(f"{path}: its columns are not those of per-task records; evaluate the cell again")
    records = Records({name: table[name].to_numpy() for name in table.column_names}, metadata)
    for name in MEASURES:
        require_possible(path, name, records.columns[name])
    return records


def require_possible(path: Path, measure: str, values: np.ndarray) -> None:
    """Raise BadInput for a percentage beyond ±100 or an infinite value: no evaluation gives one, sealed or not."""
    largest = np.abs(values[~np.isnan(values)]).max(initial=0.0)
    if largest > PERCENT and (np.isinf(largest) or measure not in UNBOUNDED):
        raise BadInput(f"{path}: {measure} reaches {largest:g}, expected percent; {MAKE_AGAIN}")


def record_digest(file: Path) -> str:
    """The content hash of a record, or of the whole one where an edition has kept a part of it."""
    whole = (pq.read_schema(file).metadata or {}).get(WHOLE.encode())
    return str(json.loads(whole)) if whole else sha256(file)


def summarise(
    records: Records, contents: Callable[[str], TaskContents | None] = lambda _: None
) -> dict[str, dict[str, Any]]:
    """What metrics.json holds: mean and 95 % intervals of every measure, by the name of the group.

    `ci` is over tasks, `ci_images` over other classes and images, where `contents` knows the task list by its digest.
    """
    summary: dict[str, dict[str, Any]] = {}
    for protocol, way in records.groups():
        name = group_name(protocol, way)
        values = {measure: records.values(protocol, way, measure) for measure in MEASURES}
        tasks = len(values["acc"])
        made_of = contents(str(records.metadata[TASKS].get(name, "")).split("[")[0])
        group: dict[str, Any] = {"tasks": tasks}
        for measure, array in values.items():
            if not np.isnan(array).any():
                found = estimate([[Values(array.astype(np.float64), made_of.first(tasks) if made_of else None)]])
                group[measure] = {"mean": round(found.mean, 4), "ci": round(found.ci, 4)}
                group[measure] |= {"ci_images": round(found.wide, 4)} if found.error else {}
        summary[name] = group
    return summary


def write_json(path: Path, content: Any) -> None:
    """Write metrics or curves, whole or not at all; equal content gives equal bytes."""
    with whole_file(path) as partial:
        partial.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _schema(metadata: Mapping[str, Any]) -> pa.Schema:
    fields = [pa.field(name, kind) for name, kind in KEYS.items()]
    fields += [pa.field(name, pa.float32()) for name in MEASURES]
    return pa.schema(fields, {key: json.dumps(value, sort_keys=True) for key, value in sorted(metadata.items())})
