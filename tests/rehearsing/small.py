"""A workspace with small parameters to rehearse: links to the code, and its own params.yaml and grid."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.pipeline.small_params import write_small

ROOT = Path(__file__).resolve().parents[2]


def small_workspace(folder: Path, **changes: Any) -> Path:
    """`changes` are merged into params.yaml, one level deep."""
    folder.mkdir(parents=True)
    write_small(folder)
    for name in ("repro", "stages", "tools"):
        (folder / name).symlink_to(ROOT / name)
    for name in ("main.tex", "published.yaml", "tuning.json", "templates"):
        (folder / "paper" / name).symlink_to(ROOT / "paper" / name)
    params = yaml.safe_load((folder / "params.yaml").read_text())
    for key, value in changes.items():
        params[key] = {**params[key], **value} if isinstance(value, dict) else value
    (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    return folder


def rehearse(workspace: Path, *arguments: str, prove: bool = False) -> subprocess.CompletedProcess[str]:
    """What the command does, on that workspace; its report is `report.md` beside it."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.rehearsing.call", str(workspace), str(int(prove)), *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
