"""What an edition keeps for its report beside records: its datasets, class by class, and its trainings."""

import gzip
import json
import zlib
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from repro.errors import BadInput, one_line
from repro.files import whole_file
from repro.options import checked
from repro.report.courses import Course
from repro.report.details import Details

DETAILS = "details.json.gz"


def write_details(folder: Path, details: Details) -> None:
    """Write them into an edition's folder. Equal details give equal bytes."""
    text = json.dumps(asdict(details), sort_keys=True, separators=(",", ":")) + "\n"
    with whole_file(folder / DETAILS) as partial:
        partial.write_bytes(gzip.compress(text.encode(), mtime=0))


def read_details(folder: Path) -> Details:
    """Those of an edition; nothing where it keeps none. Raises BadInput where the file is not what was written."""
    file = folder / DETAILS
    if not file.is_file():
        return Details()
    try:
        content = json.loads(gzip.decompress(file.read_bytes()))
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        message = f"{file}: not the details of an edition ({one_line(error):.100})"
        raise BadInput(f"{message}; get the edition's folder anew, as with `git checkout {folder}`") from error
    return checked(Details, content, str(file))


def joined_details(parts: Iterable[Details]) -> Details:
    """The trainings of all parts, seed by seed; datasets are shown as the first seed has them."""
    first, *others = parts
    trainings: dict[str, tuple[Course, ...]] = dict(first.trainings)
    for part in others:
        for name, courses in part.trainings.items():
            trainings[name] = tuple(sorted((*trainings.get(name, ()), *courses), key=lambda course: course.seed))
    return Details(first.datasets, trainings)
