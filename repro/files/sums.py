"""Content hashes that tell a reader whether a file is what was written.

A folder is sealed by its SHA256SUMS, a line per file, as `sha256sum --check` reads them.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from repro.errors import BadInput
from repro.files.whole import whole_file

SEAL = "SHA256SUMS"
# DVC takes a file of the same size and time for unchanged, so `dvc repro` alone would skip the stage.
MAKE_AGAIN = "run `tools/doctor --results`, which names the command that makes it again"
_known: dict[tuple[str, int, int, int], str] = {}  # content hashes by path, inode, size and time of change


def sha256(path: Path) -> str:
    """Give the file's content hash in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_once(path: Path) -> str:
    """The same for large files: this process does not read one again that has not been written to since."""
    state = path.stat()
    key = (str(path.resolve()), state.st_ino, state.st_size, state.st_mtime_ns)
    if key not in _known:
        _known[key] = sha256(path)
    return _known[key]


def seal(folder: Path, *names: str) -> None:
    """Note the content hashes of these files of the folder in its SHA256SUMS; of all that are there if none is named.

    Hidden files, such as locks, stay out.
    """
    write_sums(folder / SEAL, folder, names or sorted(_visible(folder)))


def add_to_seal(folder: Path, name: str) -> None:
    """Note one more file in the SHA256SUMS of the folder, without reading the others again."""
    sums = read_seal(folder) | {name: sha256(folder / name)}
    _write_lines(folder / SEAL, sums)


def write_sums(file: Path, folder: Path, names: Iterable[str]) -> None:
    """Write the content hashes of files of `folder`, a line each, as `sha256sum --check` reads them."""
    _write_lines(file, {name: sha256(folder / name) for name in names})


def _write_lines(file: Path, sums: dict[str, str]) -> None:
    with whole_file(file) as partial:
        partial.write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()), encoding="utf-8")


def check_seal(folder: Path, *names: str, remedy: str = MAKE_AGAIN) -> dict[str, str]:
    """Content hashes of these files of a sealed folder, all where none is named, checked against the files.

    Raises BadInput that names the first file that is not what was sealed, and `remedy` as the next step.
    """
    sums = read_seal(folder, remedy)
    for name in names or sums:
        if problem := _problem(folder / name, sums.get(name)):
            raise BadInput(f"{problem}; {remedy}")
    return {name: sums[name] for name in names or sums}


def read_seal(folder: Path, remedy: str = MAKE_AGAIN) -> dict[str, str]:
    """What SHA256SUMS of the folder says, by name; raises BadInput where it says nothing."""
    try:
        lines = (folder / SEAL).read_text(encoding="utf-8").splitlines()
        sums = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    except (OSError, ValueError) as error:
        raise BadInput(f"{folder}: no readable {SEAL} beside its files ({error}); {remedy}") from error
    if not sums:
        raise BadInput(f"{folder / SEAL}: names no file, expected a content hash of each file beside it; {remedy}")
    return sums


def damage(folder: Path, remedy: str = MAKE_AGAIN) -> list[str]:
    """A sentence for each file of a sealed folder that is not what was sealed, is missing, or was never sealed."""
    try:
        sums = read_seal(folder, remedy)
    except BadInput as error:
        return [str(error)]
    problems = (_problem(folder / name, sums.get(name)) for name in sorted(sums.keys() | _visible(folder)))
    return [f"{problem}; {remedy}" for problem in problems if problem]


def _problem(file: Path, expected: str | None) -> str:
    """What is wrong with a file; nothing where its content hash is the expected one."""
    if expected is None:
        return f"{file}: {SEAL} beside it does not name it, expected its content hash there"
    found = sha256(file) if file.is_file() else "no file"
    return "" if found == expected else f"{file}: content is {found}, expected {expected}"


def _visible(folder: Path) -> set[str]:
    """The files below the folder by relative name, without the seal and hidden ones."""
    names = {file.relative_to(folder) for file in folder.rglob("*") if file.is_file()}
    return {str(name) for name in names if str(name) != SEAL and not any(part.startswith(".") for part in name.parts)}
