"""Writing that is either whole or absent: temporary name first, then one rename."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it into place on success, remove it on failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        _sync(partial)
        partial.chmod(0o644)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; swap it in on success (an older `path` goes), remove it on failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent))
    try:
        yield partial
        put_in_place(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def put_in_place(partial: Path, path: Path) -> None:
    """Make the finished folder `partial` the folder `path` (same file system); an older `path` goes."""
    for file in partial.rglob("*"):
        if file.is_file():
            _sync(file)
    partial.chmod(0o755)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", suffix=".old", dir=path.parent) as aside:
        if path.exists():
            path.replace(Path(aside) / path.name)  # the old folder is never half there under its own name
        partial.replace(path)


def sha256(path: Path) -> str:
    """Give the file's content hash in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _sync(path: Path) -> None:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
