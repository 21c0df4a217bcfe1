"""A stage as a SLURM job: what is asked of sbatch, which code comes back, and that a stopped stage's job goes."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.waiting import wait_for

SBATCH = """#!/bin/bash
printf '%s\\n' "$@" > asked
while [[ $1 != --wrap ]]; do [[ $1 == --output=* ]] && log=${1#*=}; shift; done
bash -c "$2" >> "$log"
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an sbatch that runs the job at once and an scancel that notes what it was asked."""
    for name, text in {"sbatch": SBATCH, "scancel": '#!/bin/bash\necho "$@" > cancelled\n'}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for name, value in {"DVC_STAGE": "train@a", "CLUSTER_CPUS": "4", "CLUSTER_GPUS": "1", "CLUSTER_LOG": "log"}.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def test_a_stage_is_one_job_with_its_resources_log_and_exit_code(slurm: Path) -> None:
    command = [ROOT / "tools/slurm/stage", "--partition=x", "--", "/bin/sh", "-c", "echo 'a  b'; exit 3"]
    assert subprocess.run(command, cwd=slurm, check=False).returncode == 3
    asked = (slurm / "asked").read_text().splitlines()
    assert {"--wait", "--gpus=1", "--cpus-per-task=4", "--partition=x", f"--chdir={slurm}"} <= set(asked)
    assert (slurm / "log").read_text() == "a  b\n"


def test_a_stopped_stage_cancels_its_job(slurm: Path) -> None:
    command = [ROOT / "tools/slurm/stage", "--", "/bin/sh", "-c", "echo > began; sleep 20"]
    stage = subprocess.Popen(command, cwd=slurm, start_new_session=True)
    wait_for((slurm / "began").exists)
    os.killpg(stage.pid, signal.SIGTERM)  # as the leash does
    assert stage.wait(timeout=10) == 143
    assert (slurm / "cancelled").read_text().startswith("--name=castle-train@a-")


def test_a_missing_separator_is_named(slurm: Path) -> None:
    done = subprocess.run([ROOT / "tools/slurm/stage", "true"], cwd=slurm, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("no -- before the command")) == (2, 1)
