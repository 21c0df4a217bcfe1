"""A bundle back into a clone: checked whole before anything is put in place."""

import re
import shutil
import subprocess
import tempfile
import zipfile
import zlib
from pathlib import Path

from repro import paths
from repro.editions.edition import EDITIONS, Edition
from repro.errors import BadInput, one_line
from repro.files import disk_errors_as_bad_input, put_in_place, replace_together, whole_file
from tools.dvc_doctor import dvc, local_cache, reason
from tools.editions.bundling import EDITION, METADATA, OBJECTS, SUMS
from tools.editions.inspecting import EXPECTED, inspected
from tools.editions.keeping import CHOSEN
from tools.editions.rebuilding import RENDERED

ALLOWED = re.compile(
    rf"{EDITION}/(figures/)?[A-Za-z0-9_][A-Za-z0-9_.-]*"
    rf"|{OBJECTS}/[0-9a-f]{{2}}/[0-9a-f]{{30}}(\.dir)?"
    rf"|{SUMS}|{METADATA}"
)
LEFT_OUT = ("models", "data")  # what a bundle may lack
MOST_BYTES = 200 * 2**30


def restore(file: Path) -> Edition:
    """Put an edition, its parameters, lock and rendered paper into the clone, and its contents into DVC's cache.

    Of a joined edition, which is no workspace's, the edition alone.
    Raises BadInput, and changes nothing, where the file is no such bundle, is damaged, or edits would be lost.
    """
    _require_no_edits(*CHOSEN.values(), *RENDERED.values())
    with tempfile.TemporaryDirectory(dir=paths.PAPER, prefix=".bundle-") as name, disk_errors_as_bad_input(paths.PAPER):
        folder = Path(name)
        _unpack(file, folder)
        found = inspected(file, folder)
        target = EDITIONS / found.about.name
        _require_no_edits(target)
        _fill_cache(folder / OBJECTS)
        target.parent.mkdir(exist_ok=True)
        put_in_place(folder / EDITION, target)
    if Edition(target).about.joined:
        return Edition(target)
    replace_together({file: target / kept for kept, file in {**CHOSEN, **RENDERED}.items()}, paths.PAPER)
    checkout = dvc("checkout", "--quiet", "--force", "--allow-missing")
    if checkout.returncode:
        raise BadInput(f"`dvc checkout` fails ({reason(checkout)}); repair what it names, run it again")
    _drop_empty_folders(*(Path(top) for top in LEFT_OUT))
    return Edition(target)


def _drop_empty_folders(*tops: Path) -> None:
    """Remove what a checkout leaves of outputs that are not in the bundle: DVC would take it for another content."""
    for top in tops:
        for folder in (*sorted(top.rglob("*"), reverse=True), top):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def _require_no_edits(*files: Path) -> None:
    """Raise BadInput where files that would be overwritten have edits that are in no commit."""
    command = ["git", "status", "--porcelain", "--", *map(str, files)]
    status = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if status.returncode:
        message = f"git cannot say what would be lost ({one_line(status.stderr):.200})"
        raise BadInput(f"{message}, expected a clone; restore into one")
    if edited := status.stdout.split("\n")[0][3:]:
        raise BadInput(f"{edited} has edits that are in no commit, and would be replaced; commit or drop them first")


def _unpack(file: Path, folder: Path) -> None:
    """Write the members below a folder, none elsewhere."""
    if not file.is_file():  # a device or a pipe would be read for ever
        raise BadInput(f"{file}: is no file, expected {EXPECTED}")
    try:
        with zipfile.ZipFile(file) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            if sum(member.file_size for member in members) > MOST_BYTES:
                raise BadInput(f"{file}: unpacks to more than {MOST_BYTES >> 30} GB, expected {EXPECTED}")
            for member in members:
                if not ALLOWED.fullmatch(member.filename) or ".." in member.filename:
                    raise BadInput(f"{file}: holds {member.filename[:80]!r}, expected {EXPECTED}; use none but such")
                target = folder / member.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, target.open("xb") as sink:
                    shutil.copyfileobj(source, sink)
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise BadInput(
            f"{file}: cannot be read whole ({one_line(error)}), expected {EXPECTED}; get it again"
        ) from error


def _fill_cache(objects: Path) -> None:
    copies = local_cache()
    for path in sorted(objects.glob("??/*")):
        place = copies.place(path.parent.name + path.name)
        if not place.is_file():
            with whole_file(place) as partial:
                shutil.copyfile(path, partial)
            place.chmod(0o444)
