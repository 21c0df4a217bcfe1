"""ILSVRC-12's training images: a folder per class (`n01532829/`), files named by class and number."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from repro.data.dataset import SPLITS, ClassInfo
from repro.errors import BadInput
from repro.preparation.images import RawImage
from repro.preparation.listing import image_files, read_rows, subfolders
from repro.preparation.sources.mini_lists import FileList

LISTS = Path(__file__).resolve().parent.parent / "lists"
PLACES = (".", "train", "Data/CLS-LOC/train", "ILSVRC/Data/CLS-LOC/train")
FILE_NAME = re.compile(r"n\d{8}_\d+\.jpe?g", re.IGNORECASE)
CLASS_ID = re.compile(r"n\d{8}")
EXPECTED = "ILSVRC-12's training images, a folder such as n01532829 per class"


def training_folder(root: Path) -> Path:
    """Find the class folders in `root` or where the official archive has them below it. Raises BadInput."""
    names = subfolders(root, EXPECTED)
    for place in PLACES:
        folder = root / place
        if folder.is_dir() and any(CLASS_ID.fullmatch(name) for name in subfolders(folder, EXPECTED)):
            return folder
    raise BadInput(f"{root}: holds the folders {names[:5]}, expected {EXPECTED}")


def class_files(folder: Path, class_id: str) -> list[RawImage]:
    """The images of one class sorted by number, as the counters of MiniImageNet's lists count them. Raises BadInput."""
    if not (folder / class_id).is_dir():
        raise BadInput(f"{folder}: has no folder {class_id}, expected {EXPECTED}")
    images = image_files(folder / class_id, folder)
    try:
        return sorted(images, key=lambda image: int(Path(image.source).stem.rpartition("_")[2]))
    except ValueError as error:
        message = f"{folder / class_id}: holds names that do not end in a number ({error})"
        raise BadInput(f"{message}, expected names such as {class_id}_13061.JPEG") from error


def is_ilsvrc(root: Path, class_ids: Iterable[str], per_class: int) -> bool:
    """Whether the root is ILSVRC-12's: a class folder with more images, by ILSVRC's names, than MiniImageNet takes."""
    return any(
        sum(FILE_NAME.fullmatch(name) is not None for name in os.listdir(folder)) > per_class
        for place in PLACES
        for class_id in class_ids
        if (folder := root / place / class_id).is_dir()
    )


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
                where = f"{listed.place}: {seen} of class {class_id} in the root"
                raise BadInput(f"{where}, expected the complete class folder of ILSVRC-12")
            images.append(image)
        return images

    def _find_name(self, filename: str, class_id: str) -> RawImage | None:
        return self._by_name.get(Path(filename).stem)

    def _find_rank(self, filename: str, class_id: str) -> RawImage | None:
        images = self.ranked.get(class_id, [])
        rank = int(Path(filename).stem.removeprefix(class_id))
        return images[rank - 1] if 1 <= rank <= len(images) else None


def read_classes(table: Path, columns: Mapping[str, str]) -> list[ClassInfo]:
    """Read a class list: a tab-separated table with the column `split` and the given ones. Raises BadInput."""
    rows = read_rows(table, ["split", *columns.values()], delimiter="\t")
    for split, *_ in rows:
        if split not in SPLITS:
            raise BadInput(f"{table}: has the split {split!r}, expected {', '.join(SPLITS)}")
    return [ClassInfo(split=split, **dict(zip(columns, values, strict=True))) for split, *values in rows]
