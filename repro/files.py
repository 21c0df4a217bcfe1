"""Writing that is either whole or absent, and content hashes that tell a reader whether a file is what was written."""

import errno
import fcntl
import glob
import hashlib
import os
import secrets
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from repro.errors import BadInput

SEAL = "SHA256SUMS"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)

# Whole or absent


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it into place on success, remove it on failure.

    Raises BadInput where the disk is full or refuses.
    """
    with disk_named(path), _partial(path, _new_file) as partial:
        yield partial
        _sync(partial)
        partial.chmod(0o644)
        partial.replace(path)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; swap it in on success (an older `path` goes), remove it on failure.

    Raises BadInput where the disk is full or refuses.
    """
    with disk_named(path), _partial(path, tempfile.mkdtemp) as partial:
        yield partial
        put_in_place(partial, path)


def put_in_place(partial: Path, path: Path) -> None:
    """Make the finished folder `partial` the folder `path` (same file system); an older `path` goes."""
    for file in partial.rglob("*"):
        if file.is_file():
            _sync(file)
    partial.chmod(0o755)
    with uninterrupted():
        while True:
            discard(path)
            try:
                partial.replace(path)
                return
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # another process put its own there just now
                    raise


def discard(path: Path) -> None:
    """Remove a folder; a kill in between leaves none that is half there under its own name."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.old")
    with uninterrupted():
        with suppress(FileNotFoundError):
            path.replace(aside)
        shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let SIGINT and SIGTERM wait for the end of the block, which must be short: they would leave it half done."""
    if threading.current_thread() is not threading.main_thread():  # signals are handled in the main thread alone
        yield
        return
    noted: list[int] = []
    try:
        with signals_noted() as noted:
            yield
    finally:
        if noted:
            signal.raise_signal(noted[0])


@contextmanager
def signals_noted() -> Iterator[list[int]]:
    """Give the list that SIGINT and SIGTERM go to, so that what is under way ends whole; for the main thread."""
    noted: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in before:
            signal.signal(number, lambda received, _frame: noted.append(received))
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Make the folder and hold it while the block runs; if it is empty then, it goes.

    Raises BadInput where another process holds it.
    """
    with disk_named(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY)
    try:
        try:
            free = _locked(lock)
        except OSError:  # a file system that cannot lock folders, as NFS: no protection there
            free = True
        if not (free and _is_open_as(lock, folder)):  # gone: its holder has ended just now, maybe there is another
            raise BadInput(f"{folder} is in use by another process of this stage; wait for it or stop it")
        try:
            yield
        finally:
            with suppress(OSError):
                folder.rmdir()
    finally:
        os.close(lock)


@contextmanager
def disk_named(path: Path) -> Iterator[None]:
    """Turn a full disk, or one that refuses to be written to, into BadInput that says so of `path`."""
    try:
        yield
    except BadInput:
        raise
    except Exception as error:  # safetensors and Arrow have errors of their own for it
        number = getattr(error, "errno", None)
        if number in NO_ROOM or os.strerror(errno.ENOSPC) in str(error):
            raise BadInput(f"{path}: no space left for it; free some space and run the same command again") from error
        if number in REFUSED:
            message = f"{path} cannot be written ({os.strerror(int(number or 0))})"
            raise BadInput(f"{message}; expected a folder that you may write to") from error
        raise


@contextmanager
def _partial(path: Path, make: Callable[[str | None, str | None, str | None], str]) -> Iterator[Path]:
    """A new temporary place beside `path`, held by this process and gone at the end.

    Those that a killed process left behind go as well: nobody holds them any more.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.*"):
        if left.suffix in (".partial", ".old"):
            _remove_unheld(left)
    with ExitStack() as end:
        with uninterrupted():
            partial, lock = _held(lambda: Path(make(".partial", f".{path.name}.", str(path.parent))))
            end.callback(_let_go, partial, lock)
        yield partial


def _held(make: Callable[[], Path]) -> tuple[Path, int]:
    """A new place and the lock on it."""
    while True:
        place = make()
        with suppress(FileNotFoundError):  # another process tidied up before it was held
            lock = os.open(place, os.O_RDONLY)
            with suppress(OSError):  # a file system without locks has no tidying up either
                fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_open_as(lock, place):
                return place, lock
            os.close(lock)


def _let_go(place: Path, lock: int) -> None:
    with uninterrupted():
        _remove(place)
        os.close(lock)


def _new_file(suffix: str | None, prefix: str | None, folder: str | None) -> str:
    handle, name = tempfile.mkstemp(suffix, prefix, folder)
    os.close(handle)
    return name


def _remove_unheld(path: Path) -> None:
    with suppress(OSError):
        lock = os.open(path, os.O_RDONLY)
        try:
            if _locked(lock):
                _remove(path)
        finally:
            os.close(lock)


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_open_as(handle: int, path: Path) -> bool:
    """Tell whether the path still leads to what was opened: another of its name may have come."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


# Content hashes


def sha256(path: Path) -> str:
    """Give the file's content hash in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def seal(folder: Path, *names: str) -> None:
    """Note the content hashes of these files of the folder in its SHA256SUMS."""
    write_sums(folder / SEAL, folder, names)


def write_sums(file: Path, folder: Path, names: Iterable[str]) -> None:
    """Write the content hashes of files of `folder`, a line each, as `sha256sum --check` reads them."""
    lines = [f"{sha256(folder / name)}  {name}\n" for name in names]
    with whole_file(file) as partial:
        partial.write_text("".join(lines), encoding="utf-8")


def sealed(folder: Path, *names: str, remedy: str) -> dict[str, str]:
    """Content hashes of these files of a sealed folder, all where none is named, checked against the files.

    Raises BadInput that names the first file that is not what was sealed, and `remedy` as the next step.
    """
    try:
        lines = (folder / SEAL).read_text(encoding="utf-8").splitlines()
        expected = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    except (OSError, ValueError) as error:
        raise BadInput(f"{folder}: no readable {SEAL} beside its files ({error}); {remedy}") from error
    if not expected:
        raise BadInput(f"{folder / SEAL}: names no file, expected a content hash of each file beside it; {remedy}")
    for name in names or expected:
        file = folder / name
        if name not in expected:
            raise BadInput(f"{file}: {SEAL} beside it does not name it, expected its content hash there; {remedy}")
        found = sha256(file) if file.is_file() else "no file"
        if found != expected[name]:
            raise BadInput(f"{file}: content is {found}, expected {expected[name]}; {remedy}")
    return {name: expected[name] for name in names or expected}
