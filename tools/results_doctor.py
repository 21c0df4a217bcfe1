"""The whole workspace, checked: what DVC knows, the records of every cell, the runs behind them, and the tables."""

import re
from collections.abc import Iterator, Sequence
from contextlib import chdir
from functools import cache
from pathlib import Path

from repro import paths
from repro.data.episodes import read_tasks
from repro.errors import BadInput
from repro.files import SEAL, check_seal, damage, sha256
from repro.results.records import RECORDS, TASKS, Records, group_name, read_records
from stages.settings.grid import Grid, Line, read_grid
from stages.settings.params import read_params
from stages.tracking import has_ended, recorded_runs, run_folders
from stages.tracking.names import printable
from tools.dvc_doctor import dvc_problems, is_content

LIST_OF_TASKS = re.compile(r"([^\[]*)(?:\[:([0-9]{1,9})\])?")  # a digest, and how many of its tasks were taken
stored_tasks = cache(read_tasks)  # a list is read once for all cells


def check_results(folder: Path) -> int:
    """Print a line per problem of a workspace, each with the next step, or one line; the exit code is 1 or 0.

    Raises BadInput where params.yaml or paper/grid.yaml cannot be read.
    """
    with chdir(folder):
        grid, seeds = read_grid(), read_params(paths.PARAMS).seeds
        if not any(map(Path.exists, (paths.SETTINGS, paths.RUNS, paths.ALL_RESULTS))):
            print(f"{folder}: nothing has run here yet; `tools/repro` runs everything")
            return 1
        changed: set[str] = set()
        problems = list(dvc_problems(changed))
        problems += cell_problems(grid, seeds, changed)
        problems += run_problems(paths.RUNS)
        cells = len(grid.lines())
    for problem in problems:
        print(printable(problem))
    if problems:
        print(f"{len(problems)} problems in {folder}")
    else:
        print(f"{folder}: {cells} cells have whole records and their runs; nothing changed since the tables were made")
    return int(bool(problems))


# Records and runs


def cell_problems(grid: Grid, seeds: Sequence[int], named: set[str]) -> Iterator[str]:
    """Replicates of the grid's cells without whole records, or whose records have no completed run.

    Not those of cells that are named already.
    """
    completed, unfinished = evaluation_runs()
    for cell, line in grid.lines().items():
        if str(paths.results(cell)) in named:
            continue
        for seed in seeds:
            stage, folder = grid.stage_of(cell), paths.results(cell, seed)
            again = f"run `rm -r {folder} && dvc repro {stage}`"
            if not (folder / RECORDS).is_file():
                yield f"{folder}: no records of this replicate; run `dvc repro {stage}`"
                continue
            try:
                check_seal(folder, remedy=again)
                yield from record_problems(read_records(folder / RECORDS), line, cell, seed, again, named)
            except BadInput as error:
                yield str(error)
                continue
            if sha256(folder / RECORDS) not in completed:
                why = unfinished.get((cell, seed), "no run in runs/ says that it wrote them")
                yield f"{folder / RECORDS}: {why}; restore that run's folder, or {again}"


def record_problems(records: Records, line: Line, cell: str, seed: int, again: str, named: set[str]) -> Iterator[str]:
    """What is missing among the rows, or was measured on other tasks than those in episodes/ that are not named yet."""
    file, shot, groups = paths.results(cell, seed) / RECORDS, line.shot, records.groups()
    if records.metadata.get("cell") != cell:
        yield f"{file}: records of {records.metadata.get('cell')}; {again}"
    measured = sum(protocol == "gfsl" for protocol, _ in groups)
    if measured != len(line.ways):
        yield f"{file}: joint tasks of {measured} ways, expected {len(line.ways)}; {again}"
    for protocol, way in groups:
        stored = paths.tasks(line.dataset, "test", None if protocol == "seen" else way, shot, seed)
        if str(paths.episodes(line.dataset, "test")) in named:
            continue
        tasks = stored_tasks(stored)
        group = group_name(protocol, way)
        tasks_name = str(records.metadata[TASKS].get(group, "nothing"))
        digest, limit = match.groups() if (match := LIST_OF_TASKS.fullmatch(tasks_name)) else (tasks_name, None)
        expected, rows = int(limit or tasks.spec.tasks), len(records.values(protocol, way, "acc"))
        if digest != tasks.digest:
            yield f"{file}: {group} was measured on task list {digest}, expected {tasks.digest}; {again}"
        if rows != expected:
            yield f"{file}: {group} has {rows} tasks, expected {expected}; {again}"


def run_problems(runs: Path) -> Iterator[str]:
    """Files of run folders that are not what was recorded, and sources that are not what their names say."""
    remedy = "restore that run's folder from a copy, or delete it and look again which stage has to run"
    for folder in run_folders(runs):
        if (folder / SEAL).exists() or has_ended(folder):
            yield from damage(folder, remedy)
    for source in sorted((runs / "_sources").glob("*_*")):
        if not is_content(source, source.stem.rpartition("_")[2]):
            yield f"{source}: content is not what its name says; delete it, and the next run stores it again"


def evaluation_runs() -> tuple[set[str], dict[tuple[str, int], str]]:
    """Content hashes of the records that completed runs wrote, and a word on the latest unfinished run by replicate."""
    runs = list(recorded_runs(paths.RUNS, "evaluate"))
    completed = {str(run.result.get("records", "")) for run in runs if run.status == "COMPLETED"}
    named = [(run, run.config.get("cell"), run.config.get("seed")) for run in runs if run.status != "COMPLETED"]
    return completed, {
        (cell, seed): f"its run {run.name} is {run.status}"
        for run, cell, seed in named
        if isinstance(cell, str) and isinstance(seed, int)  # else its record is none of ours
    }
