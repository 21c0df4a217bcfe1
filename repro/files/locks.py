"""Locks on files and folders: each ends with the process that holds it, however that ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from repro.errors import BadInput
from repro.files.disk import disk_errors_as_bad_input


def try_to_lock(file: IO[Any] | int) -> bool:
    """Lock an open file or folder for this process; False where another has it.

    Raises OSError on a file system without locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_to_lock(file: IO[Any] | int) -> None:
    """Lock an open file or folder for this process as soon as nobody else has it."""
    fcntl.flock(file, fcntl.LOCK_EX)


@contextmanager
def exclusive_folder(folder: Path) -> Iterator[None]:
    """Make the folder and hold it while the block runs; if it is empty then, it goes.

    Raises BadInput where another process holds it.
    """
    with disk_errors_as_bad_input(folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            free = try_to_lock(handle)
        except OSError:  # a file system that cannot lock folders, as NFS: no protection there
            free = True
        # Its last holder may have removed it after we opened it, and another process made a new one.
        if not (free and leads_to(folder, handle)):
            raise BadInput(f"{folder} is in use by another process of this stage; wait for it or stop it")
        try:
            yield
        finally:
            with suppress(OSError):
                folder.rmdir()
    finally:
        os.close(handle)


@contextmanager
def folder_in_turn(folder: Path) -> Iterator[None]:
    """Wait until nobody else holds the folder, and hold it while the block runs; nothing is written there."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system that cannot lock folders, as NFS: no protection there
            wait_to_lock(handle)
        yield
    finally:
        os.close(handle)


def leads_to(path: Path, handle: int) -> bool:
    """Tell whether the path still leads to what was opened: another may have taken its name."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
