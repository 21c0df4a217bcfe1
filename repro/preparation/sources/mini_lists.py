"""MiniImageNet's published file lists, in both namings, and the ILSVRC files that they mean.

A list (columns filename, label) names images either by ILSVRC's own names (`n01532829_13061.JPEG`), or by a counter
(`n0153282900000005.jpg`): the image's rank within its class, counted from 1 in the order of ILSVRC's numbers.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from repro.errors import BadInput
from repro.preparation.images import RawImage
from repro.preparation.listing import read_rows
from repro.preparation.sources.ilsvrc import class_files

NAMINGS = {
    "ilsvrc": re.compile(r"(n\d{8})_(\d+)\.(?:jpe?g|png)", re.IGNORECASE),
    "counter": re.compile(r"(n\d{8})(\d{8})\.(?:jpe?g|png)", re.IGNORECASE),
}


@dataclass(frozen=True)
class FileList:
    """A published list: its file, its naming (a key of NAMINGS) and its (file name, class) rows."""

    file: Path
    naming: str
    rows: list[tuple[str, ...]]


def read_list(file: Path) -> FileList:
    """Read one CSV and tell its naming; raises BadInput for a row that is not named that way or not by its class."""
    rows = read_rows(file, ["filename", "label"])
    if not rows:
        raise BadInput(f"{file}: names no files, expected rows of filename and label")
    naming = next((each for each, pattern in NAMINGS.items() if pattern.fullmatch(rows[0][0])), "ilsvrc")
    for number, (filename, class_id) in enumerate(rows, start=2):
        match = NAMINGS[naming].fullmatch(filename)
        if match is None or match[1] != class_id:
            message = f"{file}: line {number} names {filename!r} of class {class_id!r}"
            raise BadInput(f"{message}, expected n01532829_13061.JPEG or n0153282900000005.jpg, as in the other lines")
    return FileList(file, naming, rows)


class Catalogue:
    """The files of some ILSVRC classes, by rank and by name."""

    def __init__(self, folder: Path, class_ids: Iterable[str]) -> None:
        """List the class folders in `folder`. Raises BadInput."""
        self.ranked = {class_id: class_files(folder, class_id) for class_id in class_ids}
        self._by_name = {Path(raw.source).stem: raw for images in self.ranked.values() for raw in images}

    def find(self, listed: FileList) -> list[RawImage]:
        """The image that each row of a list means. Raises BadInput for the first that is not there."""
        find = {"ilsvrc": self._find_name, "counter": self._find_rank}[listed.naming]
        images = []
        for filename, class_id in listed.rows:
            image = find(filename, class_id)
            if image is None:
                seen = f"names {filename}, which is not among the {len(self.ranked.get(class_id, ()))} images"
                where = f"{listed.file}: {seen} of class {class_id} in the root"
                raise BadInput(f"{where}, expected the complete class folder of ILSVRC-12")
            images.append(image)
        return images

    def _find_name(self, filename: str, class_id: str) -> RawImage | None:
        return self._by_name.get(Path(filename).stem)

    def _find_rank(self, filename: str, class_id: str) -> RawImage | None:
        images = self.ranked.get(class_id, [])
        rank = int(Path(filename).stem.removeprefix(class_id))
        return images[rank - 1] if 1 <= rank <= len(images) else None
