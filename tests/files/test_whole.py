"""Files and folders written whole or not at all; full disks, kills and signals are tried in tests/faults."""

import ctypes
import os
import pkgutil
from pathlib import Path

import pytest

from repro.errors import BadInput
from repro.files import (
    exclusive_folder,
    file_errors_as_bad_input,
    replace_together,
    whole_file,
    whole_files,
    whole_folder,
)


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


def test_a_file_where_a_folder_should_be_and_the_reverse_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    for write in (whole_file, whole_folder, whole_files):
        with pytest.raises(BadInput, match="a folder above it is a file, expected a folder; move it away"):
            with write(tmp_path / "file" / "x") as partial:
                assert partial
    with pytest.raises(BadInput, match="/folder or a folder above it is a folder, expected a file; move it away"):
        with whole_file(tmp_path / "folder") as partial:
            partial.write_text("words")
    with pytest.raises(BadInput, match="/file or a folder above it is a file"), whole_folder(tmp_path / "file"):
        pass
    (tmp_path / "gone").symlink_to("nowhere")
    with pytest.raises(BadInput, match="/gone is a link that leads nowhere, expected a folder or nothing"):
        with whole_folder(tmp_path / "gone" / "x") as partial:
            assert partial
    (tmp_path / "gone").unlink()
    with pytest.raises(BadInput, match="is a file, expected a folder"), exclusive_folder(tmp_path / "file" / "x"):
        pass
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder", "inner"]


def test_files_that_belong_together_appear_together_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    (tmp_path / "old").write_text("old")
    (tmp_path / "shown").mkdir()
    (tmp_path / "shown" / "stale").touch()
    with pytest.raises(RuntimeError), whole_files(tmp_path) as partial:
        (partial / "old").write_text("new")
        raise RuntimeError
    assert (tmp_path / "old").read_text() == "old" and (tmp_path / "shown" / "stale").exists()
    with whole_files(tmp_path) as partial:
        (partial / "old").write_text("new")
        (partial / "shown").mkdir()
        (partial / "shown" / "fresh").touch()
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert found == ["kept", "old", "shown", "shown/fresh"] and (tmp_path / "old").read_text() == "new"


def test_what_takes_its_place_together_does_so_whole_or_leaves_all_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "new" / "inner").mkdir(parents=True)
    (tmp_path / "new" / "inner" / "words").write_text("new")
    (tmp_path / "old").write_text("old")
    (tmp_path / "folder").mkdir()
    wanted = {tmp_path / "old": "new", tmp_path / "shown": tmp_path / "new" / "inner"}
    for wrong, said in {"folder": "folder is a folder, expected a file; move it away", "old/x": "is a file"}.items():
        with pytest.raises(BadInput, match=said):
            replace_together({**wanted, tmp_path / wrong: "x"}, tmp_path)
        assert (tmp_path / "old").read_text() == "old" and not (tmp_path / "shown").exists()
    with pytest.raises(FileNotFoundError):
        replace_together({**wanted, tmp_path / "more": tmp_path / "gone"}, tmp_path)
    assert (tmp_path / "old").read_text() == "old"
    replace_together(wanted, tmp_path)
    assert (tmp_path / "old").read_text() == "new" and (tmp_path / "shown" / "words").read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "new", "old", "shown"]


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "renameat2"), reason="this system cannot exchange names")
@pytest.mark.parametrize("write", [whole_folder, whole_files])
@pytest.mark.parametrize("call", ["shutil.rmtree", "pathlib.Path.replace", "os.fsync"])
def test_a_kill_amid_a_swap_leaves_the_older_or_the_new_folder(write, call: str, tmp_path: Path) -> None:
    def shown(words: str) -> None:
        with write(tmp_path / "shown" if write is whole_folder else tmp_path) as partial:
            inner = partial if write is whole_folder else partial / "shown"
            inner.mkdir(exist_ok=True)
            (inner / "words").write_text(words)

    for number in range(3):  # killed before the first, second or third call of that kind
        shown("before")
        if (child := os.fork()) == 0:
            left = iter([None] * number)
            module, _, name = call.rpartition(".")
            real = pkgutil.resolve_name(call)

            def or_die(*arguments, left=left, real=real, **options):
                next(left, ...) is ... and os._exit(9)
                return real(*arguments, **options)

            setattr(pkgutil.resolve_name(module), name, or_die)
            shown("after")
            os._exit(0)
        os.waitpid(child, 0)
        assert (tmp_path / "shown" / "words").read_text() in ("before", "after")
    shown("last")
    assert [path.name for path in tmp_path.iterdir()] == ["shown"]


def test_a_link_in_the_place_of_a_folder_makes_way_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").touch()
    (tmp_path / "folder").symlink_to("elsewhere")
    with whole_folder(tmp_path / "folder") as partial:
        (partial / "words").touch()
    assert not (tmp_path / "folder").is_symlink() and (tmp_path / "elsewhere" / "kept").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "folder"]


@pytest.mark.parametrize(
    ("name", "said"),
    {
        "nowhere/x": "nowhere/x: No such file or directory; name another file or folder, or mend this one",
        "file/x": "file/x or a folder above it is a file, expected a folder; move it away",
        "folder": "folder or a folder above it is a folder, expected a file; move it away",
        "loop": "loop: Too many levels of symbolic links; name another",
        "x" * 300: "File name too long; name another",
    }.items(),
)
def test_any_file_that_the_system_refuses_is_one_sentence(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(BadInput) as found, file_errors_as_bad_input():
        (tmp_path / name).write_text("words")
    assert said in str(found.value) and "\n" not in str(found.value)


def test_an_error_of_no_file_stays_what_it_is() -> None:
    with pytest.raises(ConnectionRefusedError), file_errors_as_bad_input():
        raise ConnectionRefusedError(111, "Connection refused")
