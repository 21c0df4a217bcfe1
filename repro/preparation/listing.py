"""Looking into folders and lists that users bring: what is missing or forbidden is said in one sentence."""

import csv
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from repro.errors import BadInput
from repro.preparation.archives import Member, list_members
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


def image_file(file: Path, root: Path, listed_in: object, *, crop_bottom: int = 0) -> RawImage:
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
        content = file.read_bytes()
    except OSError as error:
        raise BadInput(
            f"{file}: cannot be read ({error}), expected a table with the columns {list(columns)}"
        ) from error
    return parse_rows(content, file, columns, delimiter)


def parse_rows(content: bytes, place: object, columns: Sequence[str], delimiter: str = ",") -> list[tuple[str, ...]]:
    """The same from a table's bytes; `place` names it. Spaces around names and values do not count."""
    try:
        lines = list(csv.reader(content.decode("utf-8-sig").splitlines(), delimiter=delimiter))
    except (UnicodeDecodeError, csv.Error) as error:
        expected = f"expected a table with the columns {list(columns)}"
        raise BadInput(f"{place}: cannot be read ({error}), {expected}") from error
    found = [column.strip() for column in lines[0]] if lines else []
    if any(column not in found for column in columns):
        raise BadInput(f"{place}: has the columns {found[:10]}, expected {list(columns)}")
    places = [found.index(column) for column in columns]
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        row = tuple(line[each].strip() if each < len(line) else "" for each in places)
        if "" in row and line:
            raise BadInput(f"{place}: line {number} lacks a value, expected {', '.join(columns)}")
        rows += [row] if line else []
    return rows


def read_lines(file: Path, expected: str) -> list[str]:
    """The non-empty lines of a text file. Raises BadInput."""
    try:
        return [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file}: cannot be read ({error}), expected {expected}") from error


def files_below(root: Path, expected: str) -> dict[str, Path | Member]:
    """All files below a folder, or in an archive, by their path there; hidden ones are left out. Raises BadInput."""
    if root.is_file():
        return {member.name: member for member in list_members(root)}
    return {_below(file, root): file for file in _walk(root, expected, ())}


def _walk(folder: Path, expected: str, above: tuple[str, ...]) -> Iterator[Path]:
    real = os.path.realpath(folder)
    if real in above:  # a link that leads back
        return
    for name, is_folder in _entries(folder, expected):
        if is_folder:
            yield from _walk(folder / name, expected, (*above, real))
        else:
            yield folder / name


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
