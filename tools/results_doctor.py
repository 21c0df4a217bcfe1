"""The whole workspace, checked: what DVC knows, the records of every cell, the runs behind them, and the tables."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from functools import cache
from pathlib import Path
from typing import Any

from repro import paths
from repro.data.dataset import open_dataset
from repro.data.episodes import read_tasks
from repro.errors import BadInput
from repro.files import SEAL, sealed, sha256
from repro.results.records import RECORDS, TASKS, Records, group_name, read_records
from stages._grid import EVALUATIONS, read_grid
from stages._tracking import recorded

SEALED = (RECORDS, "metrics.json", "curve.json")  # what an evaluation seals
stored_tasks = cache(read_tasks)  # a list is read once for all cells


def check_results(folder: Path) -> int:
    """Print a line per problem of a workspace, each with the next step, or one line; the exit code is 1 or 0.

    Raises BadInput where paper/grid.yaml cannot be read.
    """
    with chdir(folder):
        grid = read_grid()
        problems = list(dvc_problems(changed := set()))
        problems += cell_problems(grid, changed)
        cells = sum(len(grid[group]) for group in EVALUATIONS)
    for problem in problems:
        print(problem)
    if problems:
        print(f"{len(problems)} problems in {folder}")
    else:
        print(f"{folder}: {cells} cells have whole records and their runs; nothing changed since the tables were made")
    return int(bool(problems))


# What DVC knows


def dvc_problems(changed: set[str]) -> Iterator[str]:
    """Outputs that are not what their stage wrote (added to `changed`), then other inputs that changed since."""
    asked = subprocess.run(
        [sys.executable, "-m", "dvc", "status", "--json"], capture_output=True, text=True, check=False
    )
    if asked.returncode:
        reason = (asked.stderr.strip().splitlines() or ["it gives no reason"])[-1]
        yield f"`dvc status` fails ({reason}); repair dvc.yaml or dvc.lock"
        return
    outs: dict[str, tuple[str, str]] = {}
    others: dict[str, list[tuple[str, Any]]] = {}
    for stage, changes in json.loads(asked.stdout).items():
        for change in changes:
            if isinstance(change, str):  # "changed command", "always changed"
                others.setdefault(stage, []).append(("its command", change))
                continue
            outs |= {path: (stage, state) for path, state in change.get("changed outs", {}).items()}
            others.setdefault(stage, []).extend(change.get("changed deps", {}).items())
    changed.update(outs)
    for path, (stage, state) in outs.items():
        yield f"{damaged_file(Path(path))}: {state} since {stage} wrote it; run `dvc repro {stage}`"
    within = outs.keys() | {str(parent) for out in outs for parent in Path(out).parents}
    for stage, inputs in others.items():
        changes = [f"{path} ({words(state)})" for path, state in inputs if path not in within]
        if changes:
            yield f"{stage}: changed since it ran: {', '.join(changes)}; run `dvc repro {stage}`"


def words(state: Any) -> str:
    """DVC's word for a change; for parameters the names with theirs."""
    return ", ".join(f"{name} {how}" for name, how in state.items()) if isinstance(state, dict) else str(state)


def damaged_file(out: Path) -> str:
    """The file of a changed output that its own hashes name; the output itself where they name none."""
    try:
        if (out / SEAL).is_file():
            sealed(out, remedy="")
        if out.parent == paths.dataset("x").parent:
            open_dataset(out)
    except BadInput as error:
        return str(error).partition(":")[0]
    return str(out)


# Records and runs


def cell_problems(grid: dict[str, dict[str, Any]], named: set[str]) -> Iterator[str]:
    """Cells of the grid without whole records, or whose records have no completed run; not those named already."""
    completed, unfinished = evaluation_runs()
    for group, stage in EVALUATIONS.items():
        for cell, line in grid[group].items():
            folder, again = paths.results(cell), f"run `dvc repro {stage}@{cell}`"
            if str(folder) in named:
                continue
            if not (folder / RECORDS).is_file():
                yield f"{folder}: no records of this cell; {again}"
                continue
            try:
                sealed(folder, *SEALED, remedy=again)
                yield from record_problems(read_records(folder / RECORDS), line, cell, again)
            except BadInput as error:
                yield str(error)
                continue
            if sha256(folder / RECORDS) not in completed:
                seen = unfinished.get(cell, "no run in runs/ says that it wrote them")
                yield f"{folder / RECORDS}: {seen}; restore that run's folder, or {again.replace('repro', 'repro -f')}"


def record_problems(records: Records, line: dict[str, Any], cell: str, again: str) -> Iterator[str]:
    """What is missing among the rows, or was measured on other tasks than those in episodes/."""
    file, shot, groups = paths.results(cell) / RECORDS, line["cell"]["shot"], records.groups()
    if records.metadata.get("cell") != cell:
        yield f"{file}: records of {records.metadata.get('cell')}; {again}"
    measured = sum(protocol == "gfsl" for protocol, _ in groups)
    if measured != len(line["measure"]["ways"]):
        yield f"{file}: joint tasks of {measured} ways, expected {len(line['measure']['ways'])}; {again}"
    for protocol, way in groups:
        tasks = stored_tasks(paths.tasks(line["cell"]["dataset"], "test", None if protocol == "seen" else way, shot))
        group = group_name(protocol, way)
        digest, _, limit = str(records.metadata[TASKS].get(group, "nothing")).partition("[:")
        expected, rows = int(limit.rstrip("]") or tasks.spec.tasks), len(records.values(protocol, way, "acc"))
        if digest != tasks.digest:
            yield f"{file}: {group} was measured on task list {digest}, expected {tasks.digest}; {again}"
        if rows != expected:
            yield f"{file}: {group} has {rows} tasks, expected {expected}; {again}"


def evaluation_runs() -> tuple[set[str], dict[str, str]]:
    """Content hashes of the records that completed runs wrote, and a word on the latest unfinished run by cell."""
    runs = list(recorded(paths.RUNS, "evaluate"))
    completed = {run.result.get("records", "") for run in runs if run.status == "COMPLETED"}
    others = [run for run in runs if run.status != "COMPLETED"]
    return completed, {run.config.get("cell", ""): f"its run {run.name} is {run.status}" for run in others}
