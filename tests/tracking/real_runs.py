"""Runs of the real stages on a tiny benchmark, for the dashboard to show."""

import os
import subprocess
import sys
from pathlib import Path

from tests.pipeline.small_params import write_small

ROOT = Path(__file__).resolve().parents[2]
CELLS = ("mini-castle-1shot", "mini-protonet-1shot")
STAGES = (
    *("plan", "splits mini", "episodes mini", "pretrain mini-standard"),
    *(f"{stage} {cell}" for stage in ("train", "evaluate") for cell in CELLS),
)


def record(folder: Path) -> Path:
    """Run the stages in `folder`; give the folder of their records."""
    for name in ("repro", "stages", "requirements.lock"):
        (folder / name).symlink_to(ROOT / name)
    write_small(folder)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "DVC_ROOT": str(folder)}
    for stage in STAGES:
        subprocess.run([sys.executable, "-m", "stages", *stage.split()], cwd=folder, env=environment, check=True)
    return folder / "runs"
