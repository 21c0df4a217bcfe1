"""Any image folder: `class/image` or `domain/class/image`; classes and roles are drawn with the seed."""

from collections.abc import Sequence
from pathlib import Path

from repro.errors import BadInput
from repro.preparation.collection import NO_DOMAIN, Collection
from repro.preparation.images import RawImage
from repro.preparation.listing import image_files, subfolders
from repro.preparation.pools import Draw, Pools, domain_rule_of, draw_dataset
from repro.preparation.splits import split_sizes

EXPECTED = "a folder with class/image or domain/class/image below it"


def collect(
    name: str, seed: int, *, root: str | Path, classes: Sequence[int], extra: int, per_class: int | None = None
) -> Collection:
    """Draw a dataset from any folder of class folders. Raises BadInput.

    root: folder with class/image or domain/class/image below it
    classes: [seen, val, test], how many classes each split gets; per domain where each class lies in one domain
    extra: images of a seen class (per domain) that are held out for seen_val and seen_test, half each
    per_class: images of a class (per domain) that are used besides these; by default all
    """
    pools = read_pools(Path(root))
    rule = domain_rule_of(pools, root)
    draw = Draw(extra=extra, per_class=per_class)
    return draw_dataset(
        name,
        pools,
        rule=rule,
        sizes=split_sizes(classes),
        draw=draw,
        seed=seed,
        provenance={"source": "image_folder"},
    )


def read_pools(root: Path) -> Pools:
    """List the images by domain and class, whichever of the two layouts it is."""
    outer = subfolders(root, EXPECTED)
    if not outer:
        raise BadInput(f"{root}: holds no folders, expected {EXPECTED}")
    has_domains = bool(subfolders(root / outer[0], EXPECTED))
    if not has_domains:
        return {NO_DOMAIN: read_classes(root, root)}
    return {domain: read_classes(root / domain, root) for domain in outer}


def read_classes(folder: Path, root: Path) -> dict[str, list[RawImage]]:
    """Class → images for `class/image` below `folder`; every class must have at least one image."""
    found = {name: image_files(folder / name, root) for name in subfolders(folder, "a folder per class")}
    empty = sorted(name for name, images in found.items() if not images)
    if not found or empty:
        seen = f"{folder / empty[0]} holds no JPEG or PNG" if empty else f"{folder} holds no folders"
        raise BadInput(f"{seen}, expected a folder of images per class; check that the root is {EXPECTED}")
    return found
