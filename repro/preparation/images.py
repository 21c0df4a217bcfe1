"""Raw images as bytes: reading them wherever they lie, and telling which share their content."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from repro.errors import BadInput
from repro.preparation.archives import Member

AT_ONCE = 4096  # images waiting for a thread; more would only take memory
TAIL = 4096  # bytes; the end of a JPEG is compressed picture data, which tells pictures apart


@dataclass(frozen=True, slots=True, eq=False)
class RawImage:
    """One image of a source, compared by identity.

    `origin` is a file, a file in an archive, an encoded picture in memory, or pixels (H×W×3, uint8). `source` is what
    the manifest says of it: a path below the root, or file#number. `crop_bottom` rows at the bottom are no part of the
    picture.
    """

    origin: Path | Member | bytes | np.ndarray
    source: str
    crop_bottom: int = 0

    def __str__(self) -> str:
        """Name the image to a user: the file's path where it has one."""
        return str(self.origin) if isinstance(self.origin, Path | Member) else self.source


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_content(raw: RawImage) -> bytes:
    """The bytes that identify an image: its file, its encoding or its pixels. Raises BadInput."""
    if isinstance(raw.origin, Path | Member):
        return read_origin(raw.origin)
    return raw.origin if isinstance(raw.origin, bytes) else raw.origin.tobytes()


def read_origin(origin: Path | Member) -> bytes:
    """The bytes of a file, be it in a folder or in an archive. Raises BadInput."""
    if isinstance(origin, Member):
        return origin.read()
    with _readable(origin):
        return origin.read_bytes()


def state_of(raw: RawImage) -> tuple[str, int]:
    """What changes with the image: path and time of change, or content hash; and its size. Raises BadInput."""
    if not isinstance(raw.origin, Path | Member):
        return _sha256(raw), _size(raw)
    file = raw.origin.archive if isinstance(raw.origin, Member) else raw.origin
    with _readable(file):
        state = file.stat()
    size = raw.origin.size if isinstance(raw.origin, Member) else state.st_size
    return f"{raw.origin} {state.st_mtime_ns}", size


def shared_contents(images: Sequence[RawImage], workers: int | None = None) -> dict[RawImage, str]:
    """Image → content hash, for those whose content at least one other of the images has too.

    Sizes are compared first, then the last bytes, and only what still agrees is read whole. Raises BadInput.
    """
    groups = [list(images)]
    shared: dict[RawImage, object] = {}
    with ThreadPoolExecutor(workers or 4 * available_cores()) as pool:  # waits for the disk, not for the processor
        for fingerprint in (_size, _tail, _sha256):
            groups, shared = _refined(groups, fingerprint, pool)
    return {image: str(shared[image]) for group in groups for image in group}


def without_repeats(images: Sequence[RawImage], workers: int | None = None) -> list[RawImage]:
    """The images in their order, each content once."""
    content = shared_contents(images, workers)
    firsts = {digest: image for image, digest in reversed(content.items())}
    return [image for image in images if image not in content or firsts[content[image]] is image]


def _refined(
    groups: Sequence[list[RawImage]], fingerprint: Callable[[RawImage], object], pool: ThreadPoolExecutor
) -> tuple[list[list[RawImage]], dict[RawImage, object]]:
    """Split groups by fingerprint and keep those with at least two members; also give the fingerprints."""
    members = [(number, image) for number, group in enumerate(groups) for image in group]
    prints: list[object] = []
    for start in range(0, len(members), AT_ONCE):
        prints += pool.map(fingerprint, [image for _, image in members[start : start + AT_ONCE]])
    finer: dict[tuple[int, object], list[RawImage]] = {}
    for (number, image), key in zip(members, prints, strict=True):
        finer.setdefault((number, key), []).append(image)
    kept = [group for group in finer.values() if len(group) > 1]
    return kept, {image: key for (_, image), key in zip(members, prints, strict=True)}


def _size(raw: RawImage) -> int:
    if isinstance(raw.origin, Path):
        with _readable(raw.origin):
            return raw.origin.stat().st_size
    if isinstance(raw.origin, Member):
        return raw.origin.size
    return len(raw.origin) if isinstance(raw.origin, bytes) else raw.origin.nbytes


def _tail(raw: RawImage) -> bytes:
    if not isinstance(raw.origin, Path):
        return hashlib.sha256(read_content(raw)[-TAIL:]).digest()
    with _readable(raw.origin), raw.origin.open("rb") as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - TAIL))
        return hashlib.sha256(stream.read(TAIL)).digest()


def _sha256(raw: RawImage) -> str:
    return hashlib.sha256(read_content(raw)).hexdigest()


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BadInput(f"{file}: cannot be read ({error.strerror}), expected an image that you may read") from error
