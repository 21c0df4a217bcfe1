"""What DVC itself takes: a stage of a plain `dvc repro`, and a `dvc repro` that finds everything up to date.

Measured on this pipeline with commands that do nothing and outputs that are small and there already; further cells of
the grid make it longer. At every stage DVC reads and writes the whole lock of the stage's dvc.yaml, so a stage is timed
with all stages locked, as in a clone, and beside the same pipeline in one file. Times are those of the CPU.
"""

import logging
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import chdir
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from dvc.repo import Repo

from repro import paths
from tools.scheduling.pipeline import reproduce_stage

ROOT = Path(__file__).resolve().parents[2]
SIZES = (123, 137, 300, 600)  # 137: ours
FILES = 4  # in a folder that a stage leaves
TIMED = "mini-castle-1shot"


def table(sizes: tuple[int, ...] = SIZES) -> Iterator[str]:
    """The measurements in Markdown, a row as soon as it is there."""
    yield "| stages | a stage | in one file | nothing to do | in one file |"
    yield "|---:|---:|---:|---:|---:|"
    for size in sizes:
        with tempfile.TemporaryDirectory() as two, tempfile.TemporaryDirectory() as one:
            projects = [Project(Path(two), size), Project(Path(one), size, in_one_file=True)]
            seconds = [*(project.stage_s() for project in projects), *(project.nothing_s() for project in projects)]
        yield f"| {size} | {' | '.join(f'{each:.2f} s' for each in seconds)} |"


class Project:
    """A repository with that number of stages (one more where it is even), all of them up to date."""

    def __init__(self, folder: Path, stages: int, *, in_one_file: bool = False) -> None:
        self.folder = folder
        texts = {paths.PARAMS: (ROOT / paths.PARAMS).read_text(), Path(".gitignore"): (ROOT / ".gitignore").read_text()}
        main, evaluations = (_without_work(file) for file in (Path("dvc.yaml"), paths.EVALUATIONS))
        grid = yaml.safe_load((ROOT / paths.GRID).read_text())
        datasets = yaml.safe_load(texts[paths.PARAMS])["datasets"]
        each = sum(stage.get("foreach") == "${datasets}" for stage in main.values())
        single = sum("foreach" not in stage for stage in main.values())
        grid["trained"] = _cells(grid, stages - each * len(datasets) - single)
        files = {paths.GRID: grid, Path("dvc.yaml"): {"vars": [str(paths.GRID)], "stages": main}}
        if in_one_file:
            main |= {name: stage | {"do": stage["do"] | {"wdir": "."}} for name, stage in evaluations.items()}
        else:
            files[paths.EVALUATIONS] = {"vars": [f"../{paths.GRID}"], "stages": evaluations}
        for file, text in (texts | {file: yaml.safe_dump(files[file], sort_keys=False) for file in files}).items():
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_text(text)
        subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
        logging.getLogger("dvc").setLevel(logging.CRITICAL)
        with chdir(folder):
            self.repo = Repo.init(".")
            _make_files(self.repo)
            self.repo = Repo(".")  # what it knows of the files is as old as it is
            self._bring_up_to_date()

    def _bring_up_to_date(self) -> None:
        locks = defaultdict(list)
        with self.repo.lock:
            for stage in self.repo.index.stages:
                stage.save(run_cache=False)
                stage.commit()
                locks[stage.dvcfile].append(stage)
            for file, stages in locks.items():
                file.dump_stages(stages, update_pipeline=False)

    def stage_s(self) -> float:
        """Seconds for a stage, the mean of a training and an evaluation."""
        timed = [stage for stage in self.repo.index.stages if stage.name in (f"train@{TIMED}", f"evaluate@{TIMED}")]
        with chdir(self.folder), self.repo.lock:
            began = time.process_time()
            for stage in timed:
                reproduce_stage(stage, upstream=[], force=True)
            return (time.process_time() - began) / len(timed)

    def nothing_s(self) -> float:
        """Seconds for a `dvc repro` that runs nothing."""
        before = os.times()
        command = [sys.executable, "-m", "dvc", "repro"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True)
        assert "Running" not in done.stdout, done.stdout
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system


def _without_work(file: Path) -> dict[str, Any]:
    """The stages of a dvc.yaml, with commands that do nothing; `plan` does without the code."""
    text = re.sub("cmd: .*", 'cmd: "true"', (ROOT / file).read_text()).replace(", repro, stages]", "]")
    return dict(yaml.safe_load(text)["stages"])


def _cells(grid: dict[str, Any], stages: int) -> dict[str, Any]:
    """As many trained cells, two stages each, as make up the number; the grid's own first, those that others need."""
    stages -= sum(len(grid[group]) for group in ("random", "untrained", "adapted"))
    needed = {TIMED, *(line["base"] for line in grid["adapted"].values())}
    own = sorted(grid["trained"], key=lambda name: name not in needed)
    names = [own[number % len(own)] for number in range(-(-stages // 2))]
    return {
        f"{name}-{number}" if number >= len(own) else name: grid["trained"][name] for number, name in enumerate(names)
    }


def _make_files(repo: Repo) -> None:
    """Whatever the stages leave and read, small; a path without an ending is a folder."""
    stages = repo.index.stages
    for item in chain(*(stage.outs for stage in stages), *(stage.deps for stage in stages)):
        path = Path(item.fs_path)
        if not path.exists():
            files = [path] if path.suffix else [path / "0" / str(number) for number in range(FILES)]
            files[0].parent.mkdir(parents=True, exist_ok=True)
            for file in files:
                file.write_text(str(file))
