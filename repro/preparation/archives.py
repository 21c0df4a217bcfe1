"""Archives read in place: a zip or tar is listed, and its files are read where they lie. Nothing is unpacked to a name.

A compressed tar cannot be read out of order, so that its content is first copied to a nameless temporary file (in
TMPDIR), which vanishes with the process. Everything that can be wrong with an archive ends in one sentence.
"""

import bz2
import gzip
import lzma
import os
import posixpath
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from repro.errors import BadInput, one_line

EXPECTED = "a folder, or a whole .tar, .tar.gz or .zip"
MOST_BYTES = 1 << 28  # of one file: a photograph has a thousandth of it
COPIED_AT_ONCE = 1 << 20
TAR_BLOCK = 512
_COMPRESSED: dict[bytes, Callable[..., BinaryIO]] = {
    b"\x1f\x8b": gzip.open,  # type: ignore[dict-item]
    b"BZh": bz2.open,  # type: ignore[dict-item]
    b"\xfd7zXZ\x00": lzma.open,  # type: ignore[dict-item]
}


class Opened:
    """A file descriptor of its own, closed with the last member that reads from it."""

    def __init__(self, stream: BinaryIO) -> None:
        """Keep the file of an open stream, which may be closed."""
        self._number = os.dup(stream.fileno())

    def __del__(self) -> None:
        os.close(self._number)

    def read(self, count: int, offset: int) -> bytes:
        """Read without a position that threads would share."""
        return os.pread(self._number, count, offset)


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A file inside an archive: `stored` bytes at `offset` of `opened`, which are `size` bytes once inflated."""

    archive: Path
    name: str
    opened: Opened
    offset: int
    stored: int
    size: int
    crc: int | None = None  # of a zip's files, which may be deflated
    is_deflated: bool = False

    def __str__(self) -> str:
        """Name it to a user."""
        return f"{self.archive}: {self.name}"

    def read(self) -> bytes:
        """The file's bytes, safe to call from any thread. Raises BadInput where they are damaged."""
        if self.size > MOST_BYTES:
            raise BadInput(f"{self}: has {self.size:,} bytes, expected at most {MOST_BYTES:,}; make the archive anew")
        try:
            content = self.opened.read(self.stored, self.offset)
            if self.is_deflated:
                content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, self.size + 1)
        except (OSError, zlib.error) as error:
            raise BadInput(f"{self}: cannot be read ({one_line(error)}); fetch the archive again") from error
        if len(content) != self.size or (self.crc is not None and zlib.crc32(content) != self.crc):
            raise BadInput(f"{self}: is not what the archive's table says of it; fetch the archive again")
        return content


def list_members(file: Path) -> list[Member]:
    """All regular files of an archive, in its order, hidden ones left out. Raises BadInput for a damaged archive."""
    with _readable(file), file.open("rb") as stream:
        start = stream.read(6)
        opener = next((each for magic, each in _COMPRESSED.items() if start.startswith(magic)), None)
        if start.startswith(b"PK"):
            members = list(_zipped(file, stream))
        elif opener is None:
            members = list(_tarred(file, stream))
        else:
            with tempfile.TemporaryFile() as copy:
                _inflate(file, opener, copy)
                members = list(_tarred(file, copy))
    return [each for each in members if not posixpath.basename(each.name).startswith(".")]


def _inflate(file: Path, opener: Callable[..., BinaryIO], copy: BinaryIO) -> None:
    """Copy the tar inside a compressed file."""
    with opener(file) as packed:
        while part := packed.read(COPIED_AT_ONCE):
            try:
                copy.write(part)
            except OSError as error:
                message = f"{file}: no room in {tempfile.gettempdir()} to uncompress it ({error.strerror})"
                raise BadInput(f"{message}; set TMPDIR to a larger disk, or unpack it: tar xf {file.name}") from error
    copy.flush()


def _tarred(file: Path, stream: BinaryIO) -> Iterator[Member]:
    stream.seek(0)
    opened = Opened(stream)
    found: dict[str, Member] = {}
    with tarfile.open(fileobj=stream, mode="r:") as tar:
        for entry in tar:
            if entry.islnk() and entry.linkname in found:  # equal files are stored once
                yield replace(found[entry.linkname], name=_plain_name(file, entry.name))
            elif entry.type in (tarfile.REGTYPE, tarfile.AREGTYPE):
                name = _plain_name(file, entry.name)
                found[entry.name] = Member(file, name, opened, entry.offset_data, entry.size, entry.size)
                yield found[entry.name]
        end = tar.offset
    # A tar ends in a block of zeros; tarfile takes whatever it does not understand for the end.
    if opened.read(TAR_BLOCK, end) != bytes(TAR_BLOCK):
        raise tarfile.ReadError(f"it breaks off after {len(found):,} files")


def _zipped(file: Path, stream: BinaryIO) -> Iterator[Member]:
    with zipfile.ZipFile(stream) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    opened = Opened(stream)
    for entry in entries:
        kinds = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if entry.flag_bits & 1 or entry.compress_type not in kinds:
            raise BadInput(
                f"{file}: {entry.filename} is encrypted or packed in a rare way; unpack the archive yourself"
            )
        header = opened.read(30, entry.header_offset)
        name_length, extra_length = struct.unpack("<26x2H", header)
        yield Member(
            file,
            _plain_name(file, entry.filename),
            opened,
            entry.header_offset + len(header) + name_length + extra_length,
            entry.compress_size,
            entry.file_size,
            entry.CRC,
            entry.compress_type == zipfile.ZIP_DEFLATED,
        )


def _plain_name(file: Path, name: str) -> str:
    plain = posixpath.normpath(name)
    if plain.startswith(("/", "..")) or not plain.isprintable():
        raise BadInput(f"{file}: holds the name {name!r}, expected plain names below the archive; make it anew")
    return plain


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, struct.error) as error:
        message = f"{file}: is no whole archive ({one_line(error)}), perhaps half-downloaded"
        raise BadInput(f"{message}; expected {EXPECTED}: fetch it again") from error
    except (OSError, ValueError, NotImplementedError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{file}: cannot be read ({one_line(error)}), expected {EXPECTED}") from error
