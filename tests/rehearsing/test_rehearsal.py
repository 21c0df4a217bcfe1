"""A whole rehearsal of a small grid: every kind of stage works, nothing is left behind, predictions come true."""

import os
import re
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.paths import ROOT
from tests.pipeline.workspace import digests
from tests.preparation.raw_trees import folder_tree
from tests.rehearsing.small import ENVIRONMENT, command, rehearse, small_workspace

pytestmark = pytest.mark.timeout(1800)  # a rehearsal and then the stages in full
KINDS = ("splits", "episodes", "pretrain", "train", "evaluate", "summary", "paper")


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str], str]:
    """The workspace, its files before, and the report."""
    folder = small_workspace(tmp_path_factory.mktemp("rehearsal") / "workspace")
    before = digests(folder, (".",))
    done = rehearse(folder, "mini", prove=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder, before, (folder.parent / "report.md").read_text()


def test_every_kind_of_stage_works_and_has_its_cost(rehearsed: tuple[Path, dict[str, str], str]) -> None:
    report = rehearsed[2]
    assert "Every kind of stage works." in report
    for kind in KINDS:
        assert re.search(rf"^\| {kind} \S+ \| works \|.* \| \d.* \| \d.* \|$", report, re.MULTILINE), kind
    assert re.search(r"one stage after the other: \*\*\d", report)
    assert "it fits on this disk" in report
    assert "longest chain: " in report
    assert "tiered" not in report


def test_nothing_is_left_behind_but_the_report(rehearsed: tuple[Path, dict[str, str], str]) -> None:
    folder, before, _ = rehearsed
    assert digests(folder, (".",)) == before
    assert sorted(each.name for each in folder.parent.iterdir()) == ["report.md", "workspace"]


@pytest.mark.skipif("REPRO_LONG" not in os.environ, reason="times need an idle machine: tools/test --long")
def test_cpu_time_is_predicted_to_a_quarter(rehearsed: tuple[Path, dict[str, str], str]) -> None:
    (off,) = re.findall(r"^\| all \|.*\| ([+-]\d+) % \|", rehearsed[2], re.MULTILINE)
    assert abs(int(off)) <= 25, rehearsed[2]


def test_a_failing_stage_is_named_with_its_log_and_the_rest_goes_on(tmp_path: Path) -> None:
    folder = small_workspace(tmp_path / "workspace")
    grid = yaml.safe_load((folder / "paper" / "grid.yaml").read_text())
    grid["trained"]["mini-castle-1shot"]["options"] = {"classes": 10_000}
    (folder / "paper" / "grid.yaml").write_text(yaml.safe_dump(grid))
    done = rehearse(folder, "mini", "castle", "mc_knn")
    report = (tmp_path / "report.md").read_text()
    assert done.returncode == 1
    assert "train mini-castle-1shot fails" in report
    assert "a step draws 10000 classes" in report
    assert "not tried: train mini-castle-1shot fails" in report
    assert re.search(r"evaluate mini-mc_knn-1shot \| works", report)


def raw_workspace(folder: Path) -> Path:
    """Mini from pictures in a folder of the workspace, named from there."""
    options = {"root": "raw/mini", "classes": [10, 6, 6], "extra": 8}
    params = yaml.safe_load((small_workspace(folder) / "params.yaml").read_text())
    params["datasets"]["mini"] |= {"source": "image_folder", "options": options}
    (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    folder_tree(folder / "raw" / "mini", [f"class {number}" for number in range(22)], per_class=30)
    return folder


def test_raw_data_named_from_the_workspace_is_found_from_the_scratch_folder(tmp_path: Path) -> None:
    done = rehearse(raw_workspace(tmp_path / "workspace"), "mini", "mc_knn")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "Every kind of stage works." in (tmp_path / "report.md").read_text()


def broken_workspace(folder: Path) -> Path:
    """Pictures that are listed but cannot be decoded."""
    for picture in raw_workspace(folder).glob("raw/mini/*/*.jpg"):
        picture.write_text(f"no picture: {picture}")  # a copy would be refused before anything runs
    return folder


def test_where_every_kind_fails_there_is_a_report_of_it(tmp_path: Path) -> None:
    done = rehearse(broken_workspace(tmp_path / "workspace"), "mini", "mc_knn")
    report = (tmp_path / "report.md").read_text()
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "splits mini fails" in report and "paper paper fails**: not tried: splits mini fails" in report
    assert re.search(r"without \d+ stages of kinds that fail\*\*, whose time is not known", report)


def test_no_rehearsed_run_is_copied_to_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setitem(ENVIRONMENT, "REPRO_MONGO_URL", f"mongodb://127.0.0.1:{server.getsockname()[1]}/runs")
        assert rehearse(broken_workspace(tmp_path / "workspace"), "mini", "mc_knn").returncode == 1
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_signal_leaves_no_process_and_no_folder(tmp_path: Path, faults: Any) -> None:
    folder = small_workspace(tmp_path / "workspace")
    faults.tried()
    words = command(folder, "mini", "mc_knn")
    with subprocess.Popen(words, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        for line in running.stdout:
            if line.startswith("works splits"):
                break
        running.terminate()
        assert running.wait(120) == 128 + signal.SIGTERM
    assert [each.name for each in tmp_path.iterdir()] == ["workspace"]
    faults.survived()
