"""Seals: what was written is told from what is there now."""

import os
from pathlib import Path

import pytest

from repro.errors import BadInput
from repro.files import SEAL, check_seal, damage, seal, sha256_once, sums
from tests.faults.scene import flip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sealed folder with a folder inside, and a hidden lock."""
    (tmp_path / "inner").mkdir()
    for name in ("a.txt", "inner/b.txt", ".lock"):
        (tmp_path / name).write_text(f"{name} and more")
    seal(tmp_path)
    return tmp_path


def test_a_whole_folder_has_no_damage(folder: Path) -> None:
    (folder / ".lock").write_text("changed")
    assert damage(folder, remedy="do it again") == []
    assert set(check_seal(folder, remedy="")) == {"a.txt", "inner/b.txt"}


@pytest.mark.parametrize("name", ["a.txt", "inner/b.txt", SEAL])
def test_a_flipped_bit_is_found_though_size_and_time_are_the_same(name: str, folder: Path) -> None:
    before = (folder / name).stat()
    flip(folder / name)
    os.utime(folder / name, ns=(before.st_atime_ns, before.st_mtime_ns))
    found = damage(folder, remedy="do it again")
    assert found and all(line.startswith(str(folder)) and line.endswith("; do it again") for line in found)
    if name != SEAL:
        (line,) = found
        assert f"{name}: content is " in line
        with pytest.raises(BadInput, match=name):
            check_seal(folder, remedy="do it again")


def test_missing_and_added_files_are_found(folder: Path) -> None:
    (folder / "a.txt").unlink()
    (folder / "new.txt").touch()
    gone, new = damage(folder, remedy="do it again")
    assert "a.txt: content is no file" in gone and "new.txt: SHA256SUMS beside it does not name it" in new


def test_a_folder_without_a_seal_says_so(tmp_path: Path) -> None:
    (line,) = damage(tmp_path, remedy="do it again")
    assert "no readable SHA256SUMS" in line


def test_a_file_is_hashed_again_only_after_it_was_written_to(tmp_path: Path, monkeypatch) -> None:
    read: list[Path] = []
    real = sums.sha256
    monkeypatch.setattr(sums, "sha256", lambda path: read.append(path) or real(path))
    file = tmp_path / "large"
    file.write_text("one")
    first = sha256_once(file)
    assert sha256_once(file) == first and len(read) == 1
    file.write_text("two")
    os.utime(file, ns=(1, 1))
    assert sha256_once(file) != first and len(read) == 2
