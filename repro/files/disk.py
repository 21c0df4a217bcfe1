"""What a disk refuses, said in one sentence."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from repro.errors import BadInput

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
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
        number = getattr(error, "errno", None)
        if number in NO_ROOM or any(os.strerror(full) in str(error) for full in NO_ROOM):
            raise BadInput(f"{path}: no space left for it; free some space and run the same command again") from error
        if number in IN_THE_WAY:
            place = getattr(error, "filename", None) or path
            raise BadInput(f"{place} or a folder above it is {IN_THE_WAY[number]}; move it away") from error
        if number in REFUSED:
            message = f"{path} cannot be written ({os.strerror(int(number or 0))})"
            raise BadInput(f"{message}; expected a folder that you may write to") from error
        raise
