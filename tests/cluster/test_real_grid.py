"""The real pipeline, reduced: in parallel on Ray it gives the lock and the records of a serial run, byte for byte."""

import shutil
from pathlib import Path

import pytest

from tests.cluster.toy import call, driver
from tests.pipeline.workspace import digests, make_workspace

pytestmark = pytest.mark.timeout(300)
TARGETS = ("evaluate@mini-castle-1shot", "evaluate_untrained@mini-mc_knn-1shot")


def test_parallel_and_serial_runs_give_equal_locks_and_records(
    tmp_path: Path, ray_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # DVC walks a set of stages where the targets are less than half of the graph: its order follows Python's hashes.
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # two stages at once on few cores
    serial, parallel = tmp_path / "serial", tmp_path / "parallel"
    serial.mkdir()
    shutil.copytree(make_workspace(serial), parallel)
    call(serial, "dvc", "repro", *TARGETS)
    assert call(parallel, *driver("--address", ray_address, *TARGETS)).endswith("7 ran, 0 unchanged\n")
    assert (parallel / "dvc.lock").read_bytes() == (serial / "dvc.lock").read_bytes()
    assert len(digests(serial)) > 20
    assert digests(parallel) == digests(serial)
