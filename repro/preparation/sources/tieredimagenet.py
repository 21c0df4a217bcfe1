"""TieredImageNet (Ren et al., 2018) from ILSVRC-12's training images and its class lists.

The set holds every ILSVRC-12 training image of its 608 classes, so that no further ones exist: the augmented seen
images are held out of the training images of the seen classes, with the seed (the paper does not say how it did it).
"""

from pathlib import Path

from repro.data.dataset import ClassInfo
from repro.preparation.augmented_seen import hold_out
from repro.preparation.collection import Collection, Picture, gather
from repro.preparation.images import RawImage, shared_contents
from repro.preparation.sources.ilsvrc import LISTS, class_files, read_classes, training_folder
from repro.preparation.splits import check_supercategories

COLUMNS = {"name": "wnid", "supercategory": "super_name"}


def collect(
    name: str,
    seed: int,
    *,
    root: str | Path,
    extra_per_half: int = 200,
    classes: str | Path = LISTS / "tieredimagenet.tsv",
) -> Collection:
    """List TieredImageNet. Raises BadInput.

    root: ILSVRC-12's training folder, with a folder such as n01532829 per class
    extra_per_half: images of each seen class that are held out for seen_val, and for seen_test
    classes: table of the classes with their splits and super-categories, another one for another split
    """
    folder = training_folder(Path(root))
    infos = read_classes(Path(classes), COLUMNS)
    check_supercategories(infos)
    files = {info.name: class_files(folder, info.name) for info in infos}
    seen = {info.name: files[info.name] for info in infos if info.split == "seen"}
    content = shared_contents([raw for images in seen.values() for raw in images])
    held_out = hold_out(seen, content, sizes=(extra_per_half, extra_per_half), seed=seed)
    pictures = deal(infos, files, held_out)
    return gather(name, infos, pictures, provenance={"source": "tieredimagenet", "seed": seed, "extra": "drawn"})


def deal(infos: list[ClassInfo], files: dict[str, list[RawImage]], held_out: dict[RawImage, str]) -> list[Picture]:
    """Give every image its role: the one it was held out for, else the one of its class's split."""
    base = {"seen": "train", "val": "val", "test": "test"}
    return [Picture(raw, info.name, held_out.get(raw, base[info.split])) for info in infos for raw in files[info.name]]
