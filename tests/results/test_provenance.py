"""Provenance: hashes and runs of a cell, and clear words where a file is broken."""

from pathlib import Path

import pytest

from repro.errors import BadInput
from repro.files import sha256
from repro.results.provenance import WritingRun, origin, read_dvc_hashes
from repro.results.store import Cell
from tests.report.synthetic import noisy, write_cell

CELL = Cell("mini", "castle", 1)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write_cell(tmp_path / "results", CELL, [("gfsl", 5)], noisy(tasks=4))
    return tmp_path / "results"


def test_a_cell_is_traced_to_its_record_and_run(results: Path) -> None:
    runs = {sha256(results / CELL.name / "tasks.parquet"): WritingRun("17", "abc1234", {"shot": 1})}
    found = origin(results, CELL.name, {f"{results}/mini-castle-1shot": "beef.dir"}, runs)
    assert found.sha256 == sha256(results / CELL.name / "tasks.parquet")
    assert (found.dvc_md5, found.run_id, found.git_commit, found.params) == ("beef.dir", "17", "abc1234", {"shot": 1})
    assert found.record == f"{results}/mini-castle-1shot/tasks.parquet"


def test_a_hash_of_the_file_itself_goes_first(results: Path) -> None:
    hashes = {f"{results}/mini-castle-1shot": "folder", f"{results}/mini-castle-1shot/tasks.parquet": "file"}
    assert origin(results, CELL.name, hashes, {}).dvc_md5 == "file"


def test_what_nobody_recorded_is_empty(results: Path) -> None:
    found = origin(results, CELL.name, {}, {"another record": WritingRun("17", "abc1234")})
    assert (found.dvc_md5, found.run_id, found.git_commit, found.params) == ("", "", "", {})


def test_dvc_hashes_are_read_by_path(tmp_path: Path) -> None:
    lock = tmp_path / "dvc.lock"
    lock.write_text("stages:\n  a:\n    cmd: x\n    outs:\n    - {path: results/a, md5: 12.dir}\n  b: {cmd: y}\n")
    assert read_dvc_hashes(lock) == {"results/a": "12.dir"}
    assert read_dvc_hashes(tmp_path / "no.lock") == {}


def test_broken_files_are_refused_in_one_sentence(results: Path) -> None:
    lock = results.parent / "dvc.lock"
    lock.write_text("- a\n- b\n")
    with pytest.raises(BadInput, match="not a DVC lock file"):
        read_dvc_hashes(lock)
