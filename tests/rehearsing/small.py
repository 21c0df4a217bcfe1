"""A workspace with small parameters to rehearse: links to the code, and its own params.yaml and grid."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.paths import ROOT
from tests.pipeline.small_params import write_small

ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


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


def command(workspace: Path, *arguments: str, prove: bool = False) -> list[str]:
    """What rehearses that workspace; its report is `report.md` beside it."""
    return [sys.executable, "-m", "tests.rehearsing.call", str(workspace), str(int(prove)), *arguments]


def rehearse(workspace: Path, *arguments: str, prove: bool = False) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    words = command(workspace, *arguments, prove=prove)
    return subprocess.run(words, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
