"""Files and folders that are written whole or not at all; who may read them is left to the process's umask."""

import ctypes
import errno
import glob
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from repro.errors import BadInput
from repro.files.disk import disk_errors_as_bad_input
from repro.files.locks import leads_to, try_to_lock, wait_to_lock
from repro.files.signals import signals_wait

HERE, EXCHANGE = -100, 2  # of Linux's renameat2: paths as they are, and both names change their places


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it into place on success, remove it on failure.

    Raises BadInput where the disk is full or refuses.
    """
    with disk_errors_as_bad_input(path), _temporary(path, lambda new: new.touch(exist_ok=False)) as partial:
        yield partial
        _sync(partial)
        partial.replace(path)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; swap it in on success (an older `path` goes), remove it on failure.

    Raises BadInput where the disk is full or refuses.
    """
    with disk_errors_as_bad_input(path):
        if path.exists() and not path.is_dir() and not path.is_symlink():  # somebody's file
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        with _temporary(path, Path.mkdir) as partial:
            yield partial
            put_in_place(partial, path)


@contextmanager
def whole_files(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder inside `folder`; on success its files and folders replace those of the same names.

    On failure nothing in `folder` has changed. Raises BadInput where the disk is full or refuses.
    """
    with disk_errors_as_bad_input(folder), _temporary(folder / "files", Path.mkdir) as partial:
        yield partial
        for entry in partial.iterdir():
            if entry.is_file():
                _sync(entry)
        with signals_wait():
            for entry in sorted(partial.iterdir()):
                target = folder / entry.name
                if entry.is_dir() or target.is_dir():
                    put_in_place(entry, target)
                else:
                    entry.replace(target)


def replace_together(wanted: Mapping[Path, Path | str], beside: Path) -> None:
    """Let each of these be a copy of another file or folder, or hold a text.

    All are made inside `beside` first (same file system), and signals wait while they take their places: what ends
    before leaves everything as it was. Raises BadInput where the disk is full or refuses, or a folder is in the way.
    """
    with disk_errors_as_bad_input(beside), tempfile.TemporaryDirectory(dir=beside, prefix=".coming-") as aside:
        made = {path: Path(aside) / str(number) for number, path in enumerate(wanted)}
        for path, content in wanted.items():
            _copy(content, made[path])
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir() and not made[path].is_dir():
                raise BadInput(f"{path} is a folder, expected a file; move it away")
        with signals_wait():
            for path, new in made.items():
                if new.is_dir():
                    put_in_place(new, path)
                else:
                    new.replace(path)


def _copy(content: Path | str, target: Path) -> None:
    if isinstance(content, str):
        target.write_text(content, encoding="utf-8")
    else:
        (shutil.copytree if content.is_dir() else shutil.copyfile)(content, target)


def put_in_place(partial: Path, path: Path) -> None:
    """Make the finished folder `partial` the folder `path` (same file system); an older `path` goes.

    A kill at any moment leaves the older or the new one, where the system can exchange names.
    """
    for file in partial.rglob("*"):
        if file.is_file():
            _sync(file)
    with signals_wait():
        if _exchanged(partial, path):
            _remove(partial)  # the older one
            return
        while True:
            discard(path)
            try:
                partial.replace(path)
                return
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # another process put its own there just now
                    raise


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False where `other` is not there, or the system cannot."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError):  # no Linux, or an old one
        return False
    return bool(rename(HERE, os.fsencode(one), HERE, os.fsencode(other), EXCHANGE) == 0)


def discard(path: Path) -> None:
    """Remove a folder or file; a kill in between leaves none that is half there under its own name."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.old")
    with signals_wait():
        with suppress(FileNotFoundError):
            path.replace(aside)
        _remove(aside)


@contextmanager
def _temporary(path: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    """A new place beside `path`, locked by this process and gone at the end.

    Those that a killed process left behind go as well: nobody has a lock on them any more.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.*"):
        if left.suffix in (".partial", ".old"):
            _remove_abandoned(left)
    with ExitStack() as end:
        with signals_wait():
            place, lock = _new_and_locked(path, make)
            end.callback(_remove_and_unlock, place, lock)
        yield place


def _new_and_locked(path: Path, make: Callable[[Path], None]) -> tuple[Path, int]:
    while True:
        place = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
        make(place)
        with suppress(FileNotFoundError):  # another process took it for abandoned before it was locked
            lock = os.open(place, os.O_RDONLY)
            with suppress(OSError):  # a file system without locks: nothing is taken for abandoned there
                wait_to_lock(lock)
            if leads_to(place, lock):
                return place, lock
            os.close(lock)


def _remove_and_unlock(place: Path, lock: int) -> None:
    with signals_wait():
        _remove(place)
        os.close(lock)


def _remove_abandoned(path: Path) -> None:
    with suppress(OSError):
        lock = os.open(path, os.O_RDONLY)
        try:
            if try_to_lock(lock):
                _remove(path)
        finally:
            os.close(lock)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
