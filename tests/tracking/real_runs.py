"""Runs of the real stages on a tiny benchmark, for the dashboard to show."""

import os
import subprocess
import sys
from pathlib import Path

import yaml

from tests.pipeline.small_params import small_params

ROOT = Path(__file__).resolve().parents[2]
STAGES = (
    "splits mini",
    "episodes mini",
    "pretrain mini-linear",
    "train mini-castle-1shot",
    "train mini-protonet-1shot",
    "evaluate mini-castle-1shot",
    "evaluate mini-protonet-1shot",
)


def record(folder: Path) -> Path:
    """Run the stages in `folder`; give the folder of their records."""
    for name in ("repro", "stages", "requirements.lock"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "params.yaml").write_text(yaml.safe_dump(small_params(ROOT / "params.yaml"), sort_keys=False))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "DVC_ROOT": str(folder)}
    for stage in STAGES:
        subprocess.run([sys.executable, "-m", "stages", *stage.split()], cwd=folder, env=environment, check=True)
    return folder / "runs"
