"""The real pipeline, reduced: side by side it gives the lock and the records of a serial run, byte for byte."""

import shutil
from pathlib import Path

import pytest
import yaml

from repro import paths
from tests.cluster.toy import BIN, call, driver
from tests.paths import ROOT
from tests.pipeline.workspace import digests, make_workspace

pytestmark = pytest.mark.timeout(1500)
TARGETS = tuple(
    f"{paths.EVALUATIONS}:{name}" for name in ("evaluate@mini-castle-1shot", "evaluate_untrained@mini-mc_knn-1shot")
)
# As tools/repro does in its own workspace.
REPRO = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tools.reproduction import reproduce
sys.exit(reproduce(sys.argv[1:], 3, False))
"""


def test_parallel_and_serial_runs_give_equal_locks_and_records(
    tmp_path: Path, ray_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # DVC walks a set of stages where the targets are less than half of the graph: its order follows Python's hashes.
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # two stages at once on few cores
    serial, on_ray, here = (tmp_path / name for name in ("serial", "ray", "here"))
    serial.mkdir()
    make_workspace(serial)
    params = yaml.safe_load((serial / "params.yaml").read_text())
    (serial / "params.yaml").write_text(yaml.safe_dump(params | {"seeds": [0, 1]}))
    for copy in (on_ray, here):
        shutil.copytree(serial, copy)
    call(serial, "dvc", "repro", *TARGETS)
    assert len(digests(serial)) > 40
    assert call(on_ray, *driver("--address", ray_address, *TARGETS)).endswith("7 ran, 0 unchanged\n")
    assert call(here, str(BIN / "python"), "-c", REPRO, *TARGETS).endswith("7 ran, 0 unchanged\n")
    for parallel in (on_ray, here):
        for lock in (paths.LOCK, paths.EVALUATIONS_LOCK):
            assert (parallel / lock).read_bytes() == (serial / lock).read_bytes()
        assert digests(parallel) == digests(serial)
