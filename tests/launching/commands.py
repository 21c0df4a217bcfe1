"""Stages as processes in a workspace of a test's own; their runs are recorded there."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.paths import ROOT
from tests.pipeline.small_params import small_grid, small_params
from tests.waiting import SECONDS


def new_workspace(folder: Path) -> Path:
    """The code alone."""
    for name in ("repro", "stages"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "requirements.lock", folder)
    return folder


def start(folder: Path, *command: str) -> subprocess.Popen[str]:
    """Start a module as a command: `stages` with its arguments, mostly."""
    environment = os.environ | {"DVC_ROOT": str(folder), "OMP_NUM_THREADS": "1"}
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-m", *command], cwd=folder, env=environment, **options)


def stage(folder: Path, *arguments: str, code: int = 0) -> tuple[str, str]:
    """Run a stage to its end; gives what it said on both streams."""
    process = start(folder, "stages", *arguments)
    said = process.communicate(timeout=SECONDS)
    assert process.returncode == code, said
    return said


def plan(folder: Path, *, seeds: Sequence[int] = (0,), steps: int = 4, **machine: Any) -> None:
    """Plan the small grid with these seeds, steps of CASTLE and values of `machine`."""
    params = small_params() | {"seeds": list(seeds)}
    params["machine"] |= machine
    params["methods"]["castle"]["training"]["steps"] = steps
    (folder / "params.yaml").write_text(yaml.safe_dump(params))
    (folder / "paper").mkdir(exist_ok=True)
    (folder / "paper" / "grid.yaml").write_text(yaml.safe_dump(small_grid()))
    stage(folder, "plan")
