"""What a disk refuses, said in one sentence."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from repro.errors import BadInput

NO_ROOM = {  # and what helps
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space or ask for a larger quota",
    errno.EFBIG: "let files be larger (`ulimit -f`)",
}
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
IN_THE_WAY = {  # what lies where something else should be
    **dict.fromkeys((errno.ENOTDIR, errno.EEXIST), "a file, expected a folder"),
    **dict.fromkeys((errno.EISDIR, errno.ENOTEMPTY), "a folder, expected a file"),
}


@contextmanager
def disk_errors_as_bad_input(path: Path) -> Iterator[None]:
    """Turn a full disk, or one that refuses to be written to, into BadInput that says so of `path`."""
    try:
        yield
    except BadInput:
        raise
    except Exception as error:  # safetensors and Arrow have errors of their own for it
        if words := _refusal(error, path):
            raise BadInput(words) from error
        raise


@contextmanager
def file_errors_as_bad_input() -> Iterator[None]:
    """Turn any error of the system about a named file or folder, or about standard output, into BadInput."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno not in NO_ROOM:  # of no file
            raise
        path = Path("standard output" if error.filename is None else os.fsdecode(error.filename))
        words = _refusal(error, path) or f"{path}: {error.strerror}; name another file or folder, or mend this one"
        raise BadInput(words) from error


def _refusal(error: BaseException | None, path: Path) -> str:
    """Why the disk refuses, in words; empty for an error of another kind."""
    if error is None:
        return ""
    number = getattr(error, "errno", None)
    for full, help_ in NO_ROOM.items():
        if number == full or os.strerror(full) in str(error):
            return f"{path}: no space left for it; {help_} and run the same command again"
    if number in IN_THE_WAY:
        names = [getattr(error, name, None) for name in ("filename2", "filename")]  # of a renaming, the new one
        place = next(filter(None, names), path)
        if os.path.islink(place) and not os.path.exists(place):
            return f"{place} is a link that leads nowhere, expected a folder or nothing; move it away"
        return f"{place} or a folder above it is {IN_THE_WAY[number]}; move it away"
    if number in REFUSED:
        return f"{path} cannot be written ({os.strerror(int(number or 0))}); expected a folder that you may write to"
    return _refusal(error.__cause__ or error.__context__, path)
