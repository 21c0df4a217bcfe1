"""Reads `runs/` back: a data frame of runs and one of scalars, from the files alone.

    from stages.tracking.frames import runs, scalars

    table = runs()                                    # one row per run, the oldest first
    table[table.stage == "evaluate"].pivot_table("result.hm", "config.method", "config.shot")
    curves = scalars()                                # run, name, step, value, time
    curves[curves.name == "loss"].pivot(index="step", columns="run", values="value").plot()

A folder that is no whole record of a run is left out, with a warning that names it.
"""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from repro.errors import BadInput
from stages.tracking.files import read_facts, read_scalars
from stages.tracking.names import cell_of, flattened, printable
from stages.tracking.runs import run_folders, runs_folder

FIRST_COLUMNS = ["id", "stage", "cell", "seed", "status", "start", "stop", "seconds", "continues"]
SCALARS = {"run": str, "name": str, "step": int, "value": float, "time": "datetime64[us]"}
DAMAGE = (BadInput, KeyError, TypeError, ValueError, AttributeError, OverflowError, OSError)
Value = TypeVar("Value")


def runs(folder: Path | None = None) -> pd.DataFrame:
    """One row per run, the oldest first; `folder` is `runs/` of the repository unless given.

    `id` is the name of the run's folder; `stage`, `cell`, `seed`, `status`; `start` and `stop` in UTC and the `seconds`
    between them (missing where it has not ended); the id of the run that it `continues`, or nothing; then `result.…`
    and `config.…`, one column per value, with dots for nesting (`config.training.optimisation.lr`).
    """
    rows = list(_of_each_run(folder, _row))
    results, others = _columns(rows, "result"), _columns(rows, "config")
    table = pd.DataFrame(rows, columns=[*FIRST_COLUMNS, *results, *others])
    return table.astype({"start": "datetime64[us]", "stop": "datetime64[us]", "seconds": float})


def scalars(folder: Path | None = None) -> pd.DataFrame:
    """One row per logged scalar, by run, name and step: `run`, `name`, `step`, `value`, `time` (UTC).

    A run and the one that continues it after an interruption are two: `continues` of `runs()` tells.
    """
    empty = pd.DataFrame(columns=list(SCALARS)).astype(SCALARS)
    parts = [part for part in _of_each_run(folder, _scalars_of) if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else empty


def _of_each_run(folder: Path | None, read: Callable[[Path], Value]) -> Iterator[Value]:
    """What `read` makes of the folder of every run."""
    place = folder or runs_folder()
    if not place.is_dir():
        raise BadInput(f"{place} is no folder; expected the folder of run folders, which the first stage makes")
    for run in run_folders(place):
        try:
            yield read(run)
        except DAMAGE as error:
            warnings.warn(printable(f"{run.name} is left out, no whole record of a run: {error!r}"), stacklevel=3)


def _row(folder: Path) -> dict[str, Any]:
    entry, config = read_facts(folder / "run.json"), read_facts(folder / "config.json")
    start, stop = _time(entry["start_time"]), _time(entry.get("stop_time"))
    return {
        "id": folder.name,
        "stage": entry["experiment"]["name"],
        "cell": cell_of(folder.name),
        "seed": config.get("seed"),
        "status": entry["status"],
        "start": start,
        "stop": stop,
        "seconds": (stop - start).total_seconds(),
        "continues": entry["meta"].get("continues", ""),
        **flattened({"result": entry.get("result"), "config": config}),
    }


def _time(text: str | None) -> pd.Timestamp:
    return pd.Timestamp(text).tz_localize(None) if text else pd.NaT


def _columns(rows: list[dict[str, Any]], group: str) -> list[str]:
    return sorted({key for row in rows for key in row if key.startswith(f"{group}.")})


def _scalars_of(folder: Path) -> pd.DataFrame:
    read_facts(folder / "run.json")  # without it, the folder is no record
    rows = [
        (folder.name, name, *point)
        for name, series in sorted(read_scalars(folder).items())
        for point in zip(*series.values(), strict=True)
    ]
    return pd.DataFrame(rows, columns=list(SCALARS)).astype(SCALARS)
