"""TieredImageNet (Ren et al., 2018) from ILSVRC-12's training images and its class lists.

The set holds every ILSVRC-12 training image of its 608 classes, so that no further ones exist: the augmented seen
images are held out of the training images of the seen classes, with the seed (the paper does not say how it did it).
"""

from pathlib import Path

from repro.data.dataset import ClassInfo
from repro.preparation.augmented_seen import draw_extra
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
    """List TieredImageNet from ILSVRC-12's training folder; `extra_per_half` images of a seen class go to each half."""
    folder = training_folder(Path(root))
    infos = read_classes(Path(classes), COLUMNS)
    check_supercategories(infos)
    files = {info.name: class_files(folder, info.name) for info in infos}
    seen = {info.name: files[info.name] for info in infos if info.split == "seen"}
    pictures = deal(infos, files, hold_out(seen, per_half=extra_per_half, seed=seed))
    return gather(name, infos, pictures, provenance={"source": "tieredimagenet", "seed": seed, "extra": "drawn"})


def hold_out(seen: dict[str, list[RawImage]], *, per_half: int, seed: int) -> dict[RawImage, str]:
    """Draw augmented seen images from the seen classes: image → role. An image that occurs twice stays in training."""
    content = shared_contents([raw for images in seen.values() for raw in images])
    once = {name: [raw for raw in images if raw not in content] for name, images in seen.items()}
    halves = draw_extra(once, [], {}, per_half=per_half, seed=seed)
    return {raw: role for each in halves.values() for role, members in each.by_role().items() for raw in members}


def deal(infos: list[ClassInfo], files: dict[str, list[RawImage]], held_out: dict[RawImage, str]) -> list[Picture]:
    """Give every image its role: the one it was held out for, else the one of its class's split."""
    base = {"seen": "train", "val": "val", "test": "test"}
    return [Picture(raw, info.name, held_out.get(raw, base[info.split])) for info in infos for raw in files[info.name]]
