"""What an unpacked bundle must be before a part of it is put in place: whole, and without a name that leads elsewhere.

Its sums can be forged together with its files. So all that DVC or a stage would follow is looked at: parameters and
grid with their names, and every path and content of dvc.lock and of the lists of files in folders.
"""

import json
import re
from pathlib import Path, PurePosixPath
from typing import Any

from dvc.exceptions import DvcException
from dvc.utils.serialize import parse_yaml

from repro.editions.details import read_details
from repro.editions.edition import ABOUT, NAME, SAMPLES, Edition
from repro.editions.groups import FACTS, VALUES
from repro.errors import BadInput, one_line
from repro.files import sha256
from tools.dvc_doctor import md5_of
from tools.editions.bundling import EDITION, METADATA, OBJECTS, SUMS
from tools.editions.keeping import CHOSEN
from tools.editions.rebuilding import RENDERED, resolver

EXPECTED = "a bundle that `tools/bundle NAME` wrote"
CONTENT = re.compile(r"[0-9a-f]{32}(\.dir)?")
LOCKS = ("dvc.lock", "evaluate.lock")
_CHOSEN = [file for file in CHOSEN if file.suffix != ".lock"]
LOCKED = {"path", "hash", "md5", "size", "nfiles", "isexec"}  # all that this pipeline's locks say of a file or folder
LISTED = {"relpath", "md5"}


def inspected(file: Path, folder: Path) -> Edition:
    """The edition of a bundle, unpacked in a folder; raises BadInput that names the bundle's file."""
    _require_sums(file, folder)
    try:
        edition = Edition(folder / EDITION)
        locks = () if edition.about.joined else LOCKS  # its parts' have names of their own
        for kept in map(str, (*_CHOSEN, *locks, *RENDERED, SAMPLES, VALUES, FACTS)):
            is_there = Path.is_file if Path(kept).suffix else Path.is_dir
            if not is_there(edition.folder / kept):
                raise BadInput(f"lacks {EDITION}/{kept}")
        if not NAME.fullmatch(edition.about.name):
            raise BadInput(f"its edition is named {edition.about.name!r:.60}, expected small letters and digits")
        resolver(edition, Path.cwd())  # reads parameters and grid
        edition.claims(), edition.summary(), edition.origins(), read_details(edition.folder)
        _require_places(edition, folder / OBJECTS)
    except BadInput as error:
        raise BadInput(f"{file}: {error}; expected {EXPECTED}") from error
    return edition


def _require_sums(file: Path, folder: Path) -> None:
    if not (folder / METADATA).is_file() or not (folder / SUMS).is_file() or not (folder / EDITION / ABOUT).is_file():
        raise BadInput(f"{file}: lacks {METADATA}, {SUMS} or an edition, expected {EXPECTED}")
    listed = (folder / SUMS).read_text(encoding="utf-8", errors="replace").splitlines()
    sums = {name: digest for digest, name in (line.split("  ", 1) for line in listed if "  " in line)}
    present = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    for name in sorted((sums.keys() | present.keys()) - {SUMS, METADATA}):
        if name not in present or sha256(present[name]) != sums.get(name):
            raise BadInput(f"{file}: {name} is not what was put into it, expected {EXPECTED}; get it again")
    for path in (folder / OBJECTS).glob("??/*"):
        if md5_of(path) != (path.parent.name + path.name).removesuffix(".dir"):
            raise BadInput(f"{file}: {path.parent.name}{path.name} is not of that content, expected {EXPECTED}")


def _require_places(edition: Edition, objects: Path) -> None:
    """Raise BadInput unless all that a checkout would write lies below its output, and each output below the clone."""
    for lock in sorted(edition.folder.glob("*.lock")):
        for entry in _locked(lock):
            _require_place(entry, "path", LOCKED)
    for listed in objects.glob("??/*.dir"):
        try:
            entries = list(json.loads(listed.read_bytes()))
        except (ValueError, TypeError, RecursionError) as error:
            raise BadInput(f"{listed.parent.name}{listed.name} is no list of a folder's files") from error
        for entry in entries:
            _require_place(entry, "relpath", LISTED)


def _locked(lock: Path) -> list[Any]:
    """What a lock says of every input and output, read as DVC reads it."""
    try:
        stages = parse_yaml(lock.read_text(encoding="utf-8"), lock)["stages"].values()
        return [entry for stage in stages for key in ("deps", "outs") for entry in stage.get(key, [])]
    except (DvcException, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BadInput(f"{EDITION}/{lock.name} is no lock of DVC's ({one_line(error):.100})") from error


def _require_place(entry: Any, key: str, known: set[str]) -> None:
    """Raise BadInput unless an entry says no more than a place and a content, both as they should be."""
    if not isinstance(entry, dict) or not isinstance(path := entry.get(key), str) or entry.keys() - known:
        raise BadInput(f"it says {entry!s:.100} of a file, expected {', '.join(sorted(known))} alone")
    parts, content = PurePosixPath(path).parts, entry.get("md5")
    if not parts or ".." in parts or path.startswith("/") or "\0" in path or ".git" in parts or ".dvc" in parts:
        raise BadInput(f"it would write to {path!r:.80}, expected a place below the clone")
    if not isinstance(content, str) or not CONTENT.fullmatch(content):
        raise BadInput(f"{path:.80} has the content {content!r:.60}, expected an MD5")
