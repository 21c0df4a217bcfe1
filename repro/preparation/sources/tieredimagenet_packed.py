"""TieredImageNet (Ren et al., 2018) from the packed files that are passed around: npz or pickles, read with care.

Per split: `train_labels.pkl` and either `train_images.npz` (array `images`, N×84×84×3) or `train_images_png.pkl` (a
list of PNG files as byte arrays); the same for val and test. The labels are a dictionary with `label_specific` (names
in `label_specific_str`, super-categories in `label_general` and `label_general_str`), or just with `labels`. The
released `aux_data.npz` and `aux_labels.pkl`, where present, give the augmented seen images: one set there, two halves
here.
"""

import logging
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from repro.data.dataset import ClassInfo
from repro.errors import BadInput
from repro.preparation.augmented_seen import ExtraVariant, among_training, cleaned, hold_out, shuffled, two_halves
from repro.preparation.collection import Collection, Picture, gather
from repro.preparation.images import RawImage, shared_contents
from repro.preparation.sources.tieredimagenet import deal
from repro.preparation.splits import check_supercategories, split_sizes
from repro.preparation.unpickle import read_plain_pickle

log = logging.getLogger(__name__)
STEM_OF_SPLIT = {"seen": "train", "val": "val", "test": "test"}


@dataclass(frozen=True)
class Packed:
    """One split's images by class, the classes in the order of their labels."""

    infos: list[ClassInfo]
    images: dict[str, list[RawImage]]


def collect(
    name: str,
    seed: int,
    *,
    root: str | Path,
    extra: ExtraVariant | None = None,
    extra_per_half: int = 200,
    classes: Sequence[int] = (351, 97, 160),
    npz_channels: Literal["bgr", "rgb"] = "bgr",
) -> Collection:
    """List TieredImageNet from its packed files. Raises BadInput.

    root: folder of train_images.npz (or train_images_png.pkl), train_labels.pkl and the same of val and test
    extra: published (aux_data.npz in two halves), clean (those without training images) or drawn (held out of the seen
        classes); by default published where aux_data.npz lies in the root, else drawn
    extra_per_half: images of each seen class that drawn holds out for seen_val, and for seen_test
    classes: [seen, val, test], how many classes the labels must have
    npz_channels: bgr, as OpenCV writes the npz files, or rgb for a pack in the other order
    """
    root = Path(root)
    sizes = split_sizes(classes)
    packs = {split: _read_split(root, split, npz_channels) for split in STEM_OF_SPLIT}
    for split, pack in packs.items():
        if len(pack.infos) != sizes.of(split):
            raise BadInput(f"{root}: {len(pack.infos)} {split} classes in the labels, expected {sizes.of(split)}")
    infos = [info for pack in packs.values() for info in pack.infos]
    if any(info.supercategory for info in infos):
        check_supercategories(infos)
    extra = extra or ("published" if (root / "aux_labels.pkl").exists() else "drawn")
    facts: dict[str, Any] = {"source": "tieredimagenet_packed", "seed": seed, "extra": extra}
    files = {class_name: images for pack in packs.values() for class_name, images in pack.images.items()}
    if extra == "drawn":
        seen = packs["seen"].images
        content = shared_contents([raw for images in seen.values() for raw in images])
        held_out = hold_out(seen, content, sizes=(extra_per_half, extra_per_half), seed=seed)
        pictures = deal(infos, files, held_out)
    else:
        released, counts = _released_extra(root, packs["seen"], npz_channels, seed, clean=extra == "clean")
        pictures, facts = [*deal(infos, files, {}), *released], facts | counts
    return gather(name, infos, pictures, provenance=facts)


def _read_split(root: Path, split: str, npz_channels: str) -> Packed:
    """Read one split: a class per distinct label, named as the labels file says."""
    stem = STEM_OF_SPLIT[split]
    file = root / f"{stem}_labels.pkl"
    labels, facts = _read_labels(file)
    raw = _images(root, f"{stem}_images", len(labels), npz_channels)
    infos, images = [], {}
    for label in np.unique(labels).tolist():
        places = np.flatnonzero(labels == label)
        info = ClassInfo(
            name=_unique_name(facts.get("label_specific_str"), label, stem),
            split=split,
            supercategory=_supercategory(facts, int(places[0])),
        )
        infos.append(info)
        images[info.name] = [raw[place] for place in places]
    return Packed(infos, images)


def _released_extra(
    root: Path, seen: Packed, npz_channels: str, seed: int, *, clean: bool
) -> tuple[list[Picture], dict[str, int]]:
    """The released extra images, each class's in two halves, and how many of them are training images.

    Their sorted labels count the seen classes.
    """
    file = root / "aux_labels.pkl"
    labels, _ = _read_labels(file)
    found = np.unique(labels).tolist()
    if len(found) != len(seen.infos):
        raise BadInput(f"{file}: has {len(found)} classes, expected the {len(seen.infos)} seen classes")
    raw = _images(root, "aux_data", len(labels), npz_channels)
    train = [image for images in seen.images.values() for image in images]
    content = shared_contents([*train, *raw])
    pictures = []
    for info, label in zip(seen.infos, found, strict=True):
        halves = two_halves(
            shuffled([raw[place] for place in np.flatnonzero(labels == label)], seed, "extra", info.name)
        )
        kept = cleaned(halves, train, content) if clean else halves
        pictures += [Picture(each, info.name, role) for role, half in kept.by_role().items() for each in half]
    return pictures, {"extra_listed": len(raw), "extra_among_training": len(among_training(raw, train, content))}


def _read_labels(file: Path) -> tuple[np.ndarray, dict[str, Any]]:
    """Read a labels pickle: the label of every image, and all it holds. Raises BadInput where there are no labels."""
    facts = read_plain_pickle(file)
    if isinstance(facts, dict):
        facts = {key.decode() if isinstance(key, bytes) else key: value for key, value in facts.items()}
        for key in ("label_specific", "labels"):
            if key in facts:
                return np.asarray(facts[key]).reshape(-1), facts
    seen = f"keys {sorted(map(str, facts))[:5]}" if isinstance(facts, dict) else type(facts).__name__
    raise BadInput(f"{file}: holds {seen}, expected a dictionary with label_specific or labels")


def _images(root: Path, stem: str, count: int, npz_channels: str) -> list[RawImage]:
    """The images of one file, in its order: pixels of an npz, or PNG files of a pickle. Raises BadInput."""
    npz, pickled = root / f"{stem}.npz", root / f"{stem}_png.pkl"
    if npz.exists():
        pixels_NHWC = _pixels(npz)
        flipped = pixels_NHWC[..., ::-1] if npz_channels == "bgr" else pixels_NHWC
        raw = [RawImage(each, f"{npz.name}#{place}") for place, each in enumerate(flipped)]
        file = npz
    elif pickled.exists():
        listed = read_plain_pickle(pickled)
        if not isinstance(listed, list):
            raise BadInput(f"{pickled}: holds {type(listed).__name__}, expected a list of PNG files as byte arrays")
        raw = [RawImage(bytes(each), f"{pickled.name}#{place}") for place, each in enumerate(listed)]
        file = pickled
    else:
        raise BadInput(f"{root}: has neither {npz.name} nor {pickled.name}, expected one of them")
    if len(raw) != count:
        raise BadInput(f"{file}: holds {len(raw)} images, expected {count} as in its labels")
    return raw


def _pixels(npz: Path) -> np.ndarray:
    """The array `images` of an npz, memory-mapped where it is stored uncompressed (as numpy.savez writes it)."""
    try:
        with zipfile.ZipFile(npz) as archive:
            member = archive.getinfo("images.npy")
            if member.compress_type == zipfile.ZIP_STORED:
                pixels_NHWC = _mapped(npz, archive, member)
            else:
                log.warning("%s is compressed: its images are read into memory at once", npz)
                with archive.open(member) as stream:
                    pixels_NHWC = np.lib.format.read_array(stream, allow_pickle=False)
    except (OSError, KeyError, ValueError, MemoryError, zipfile.BadZipFile) as error:
        raise BadInput(f"{npz}: cannot be read ({error}), expected an npz with an array called images") from error
    if pixels_NHWC.dtype != np.uint8 or pixels_NHWC.ndim != 4 or pixels_NHWC.shape[-1] != 3:
        seen = f"images of type {pixels_NHWC.dtype} and shape {pixels_NHWC.shape}"
        raise BadInput(f"{npz}: holds {seen}, expected uint8 of shape (N, height, width, 3)")
    return pixels_NHWC


def _mapped(npz: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, fortran, dtype = read_header[version](stream)
        before_pixels = stream.tell()
    with npz.open("rb") as stream:
        stream.seek(member.header_offset + 26)  # the local header's lengths of name and extra field
        name, extra = np.frombuffer(stream.read(4), "<u2").tolist()
    start = member.header_offset + 30 + name + extra + before_pixels
    return np.memmap(npz, dtype, "r", start, shape, "F" if fortran else "C").view(np.ndarray)


def _unique_name(names: Sequence[str] | None, label: int, stem: str) -> str:
    """A class's name with its number, since ILSVRC has two cranes and two maillots."""
    if names is None or not 0 <= label < len(names):
        return f"{stem}-{label:03d}"
    return f"{names[label]} ({stem}-{label:03d})"


def _supercategory(facts: dict[str, Any], place: int) -> str:
    names, labels = facts.get("label_general_str"), facts.get("label_general")
    return "" if names is None or labels is None else str(names[int(np.asarray(labels).reshape(-1)[place])])
