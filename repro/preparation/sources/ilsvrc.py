"""ILSVRC-12's training images: a folder per class (`n01532829/`), files named by class and number."""

import re
from collections.abc import Mapping
from pathlib import Path

from repro.data.dataset import SPLITS, ClassInfo
from repro.errors import BadInput
from repro.preparation.images import RawImage
from repro.preparation.listing import image_files, read_rows, subfolders

LISTS = Path(__file__).resolve().parent.parent / "lists"
PLACES = (".", "train", "Data/CLS-LOC/train", "ILSVRC/Data/CLS-LOC/train")
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


def read_classes(table: Path, columns: Mapping[str, str]) -> list[ClassInfo]:
    """Read a class list: a tab-separated table with the column `split` and the given ones. Raises BadInput."""
    rows = read_rows(table, ["split", *columns.values()], delimiter="\t")
    for split, *_ in rows:
        if split not in SPLITS:
            raise BadInput(f"{table}: has the split {split!r}, expected {', '.join(SPLITS)}")
    return [ClassInfo(split=split, **dict(zip(columns, values, strict=True))) for split, *values in rows]
