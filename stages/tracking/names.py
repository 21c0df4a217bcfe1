"""Names in the record of a run: its cell, its values, the files that it mentions; and how a terminal shows them."""

import re
from pathlib import Path
from typing import Any

from repro.errors import BadInput

TIME, RANDOM = r"\d{8}-\d{6}-\d{3}", r"[0-9a-f]{6}"  # how the name of a run begins and ends
RUN = re.compile(rf"{TIME}-[^-]+-(?P<cell>.+)-{RANDOM}")
PLAIN = re.compile(r"[\w.+-]+")  # what a name of ours is made of


def cell_of(run: str) -> str:
    """The cell that a run's folder is named after; empty for a folder of another name."""
    found = RUN.fullmatch(run)
    return found["cell"] if found else ""


def flattened(value: Any, name: str = "") -> dict[str, Any]:
    """All values of nested dictionaries by their dotted names; a list is one value, an empty dictionary none."""
    if not isinstance(value, dict):
        return {name: value}
    return {
        path: leaf
        for key, inner in value.items()
        for path, leaf in flattened(inner, f"{name}.{key}" if name else str(key)).items()
    }


def file_within(folder: Path, name: str) -> Path:
    """The file of that name in the folder; raises BadInput where a forged record names one outside of it."""
    file = folder / name
    if not file.resolve().is_relative_to(folder.resolve()):
        raise BadInput(f"{name!r} lies outside of {folder}; restore that run's folder or remove it")
    return file


def printable(text: str) -> str:
    """The text with everything escaped that a terminal would obey instead of showing it."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
