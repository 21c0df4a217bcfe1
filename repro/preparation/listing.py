"""Looking into folders and lists that users bring: what is missing or forbidden is said in one sentence."""

import csv
import os
from collections.abc import Sequence
from pathlib import Path

from repro.errors import BadInput
from repro.preparation.images import RawImage

ENDINGS = (".jpg", ".jpeg", ".png")


def subfolders(root: Path, expected: str) -> list[str]:
    """Sorted names of the folders in `root`, hidden ones left out. Raises BadInput saying what was expected there."""
    return [name for name, is_folder in _entries(root, expected) if is_folder]


def image_files(folder: Path, root: Path, *, crop_bottom: int = 0) -> list[RawImage]:
    """The JPEG and PNG files in `folder` sorted by name, known by their path below `root`. Raises BadInput."""
    names = [name for name, is_folder in _entries(folder, "a folder of images") if not is_folder]
    pictures = [name for name in names if name.lower().endswith(ENDINGS)]
    return [RawImage(folder / name, _below(folder / name, root), crop_bottom) for name in pictures]


def image_file(file: Path, root: Path, listed_in: Path, *, crop_bottom: int = 0) -> RawImage:
    """One image that a list names: it must exist below `root`. Raises BadInput naming the list."""
    relative = Path(os.path.relpath(file, root))
    if relative.is_absolute() or ".." in relative.parts:
        raise BadInput(f"{listed_in}: names {file}, which lies outside {root}; expected files below it")
    if not file.is_file():
        raise BadInput(f"{listed_in}: names {file}, which does not exist; expected a file list of this folder")
    return RawImage(file, _below(file, root), crop_bottom)


def read_rows(file: Path, columns: Sequence[str], delimiter: str = ",") -> list[tuple[str, ...]]:
    """Read these columns of a table with a header line. Raises BadInput for a missing file, column or value."""
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream, delimiter=delimiter)
            found = reader.fieldnames or []
            absent = [column for column in columns if column not in found]
            if absent:
                raise BadInput(f"{file}: has the columns {list(found)}, expected {list(columns)}")
            rows = [tuple((row[column] or "").strip() for column in columns) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(
            f"{file}: cannot be read ({error}), expected a table with the columns {list(columns)}"
        ) from error
    for number, row in enumerate(rows, start=2):
        if "" in row:
            raise BadInput(f"{file}: line {number} lacks a value, expected {', '.join(columns)}")
    return rows


def read_lines(file: Path, expected: str) -> list[str]:
    """The non-empty lines of a text file. Raises BadInput."""
    try:
        return [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file}: cannot be read ({error}), expected {expected}") from error


def _entries(folder: Path, expected: str) -> list[tuple[str, bool]]:
    """Sorted (name, is a folder) of what lies in `folder`; hidden entries and broken links are left out."""
    try:
        with os.scandir(folder) as found:
            entries = [(entry.name, entry.is_dir()) for entry in found if _is_visible(entry)]
    except OSError as error:
        raise BadInput(f"{folder}: cannot be listed ({error.strerror}), expected {expected}") from error
    for name, _ in entries:
        if not _is_utf8(name):
            raise BadInput(f"{folder}: holds the name {name!r}, expected names in UTF-8; rename it")
    return sorted(entries)


def _is_visible(entry: os.DirEntry[str]) -> bool:
    return not entry.name.startswith(".") and (entry.is_dir() or entry.is_file())


def _is_utf8(name: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in name)  # how Python shows undecodable bytes


def _below(file: Path, root: Path) -> str:
    return Path(os.path.relpath(file, root)).as_posix()
