"""Files and folders written whole or not at all; full disks, kills and signals are tried in tests/faults."""

import os
from pathlib import Path

import pytest

from repro.files import whole_file, whole_folder


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077, 0o002])
def test_the_umask_decides_who_may_read(umask: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        with whole_file(tmp_path / "file") as partial:
            partial.write_text("words")
        with whole_folder(tmp_path / "folder") as partial:
            (partial / "inner").write_text("words")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert modes == {"file": 0o666 & ~umask, "folder": 0o777 & ~umask, "inner": 0o666 & ~umask}


def test_what_a_killed_process_left_behind_goes_but_not_what_another_process_is_writing(tmp_path: Path) -> None:
    (tmp_path / ".kept.abc.partial").write_text("left")
    with whole_file(tmp_path / "kept") as first:
        assert not (tmp_path / ".kept.abc.partial").exists()
        with whole_file(tmp_path / "kept") as second:
            second.write_text("second")
        first.write_text("first")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("kept", "first")]
