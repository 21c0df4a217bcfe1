"""Tiny raw datasets in the layouts of the real ones: every image differs, counts are small."""

import csv
import io
import pickle
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

SEEN, VAL, TEST = ("n00000001", "n00000002"), ("n00000003",), ("n00000004", "n00000005")
MINI = {"seen": SEEN, "val": VAL, "test": TEST}
LIST_OF_SPLIT = {"seen": "train.csv", "val": "val.csv", "test": "test.csv"}
_numbers = iter(range(10**9))


def encoded(number: int, size: tuple[int, int] = (24, 20), kind: str = "JPEG") -> bytes:
    """A picture that only this number has."""
    width, height = size
    pixels = np.random.default_rng(number).integers(0, 256, (height, width, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, kind)
    return stream.getvalue()


def put(file: Path, number: int | None = None, **how: object) -> Path:
    """Write a picture, a new one where no number is given."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(encoded(next(_numbers) if number is None else number, **how))  # type: ignore[arg-type]
    return file


def ilsvrc(root: Path, class_ids: Iterable[str], per_class: int) -> Path:
    """Class folders whose numbers sort differently as text (2, 11, 101 …): ranks must count numbers."""
    for class_id in class_ids:
        for place in range(per_class):
            put(root / class_id / f"{class_id}_{ilsvrc_number(place)}.JPEG")
    return root


def ilsvrc_number(place: int) -> int:
    """The number in the name of the image of this rank (from 0)."""
    return 2 + 9 * place


def write_csv(file: Path, rows: Iterable[Sequence[str]], columns: Sequence[str] = ("filename", "label")) -> Path:
    """Write a list with its header line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="") as stream:
        csv.writer(stream).writerows([columns, *rows])
    return file


def mini_lists(folder: Path, ranks: Sequence[int], naming: str) -> Path:
    """The three lists, naming the images of these ranks (from 1) of every class."""
    for split, class_ids in MINI.items():
        write_csv(folder / LIST_OF_SPLIT[split], [(mini_name(c, rank, naming), c) for c in class_ids for rank in ranks])
    return folder


def mini_copy(root: Path, per_class: int) -> Path:
    """MiniImageNet as it is passed around: `images/` and `split/`."""
    for class_ids in MINI.values():
        for class_id in class_ids:
            for rank in range(1, per_class + 1):
                put(root / "images" / mini_name(class_id, rank, "counter"))
    mini_lists(root / "split", range(1, per_class + 1), "counter")
    return root


def mini_name(class_id: str, rank: int, naming: str) -> str:
    """The name of an image by rank (from 1) in either naming."""
    counter = f"{class_id}{rank:08d}.jpg"
    return counter if naming == "counter" else f"{class_id}_{ilsvrc_number(rank - 1)}.JPEG"


def class_table(file: Path, supercategories: bool = False) -> Path:
    """A class list in the format of the shipped ones."""
    columns = ["split", "wnid", *(["super_name"] if supercategories else [])]
    lines = ["\t".join(columns)]
    for split, class_ids in MINI.items():
        lines += ["\t".join([split, c, *([f"super {split}"] if supercategories else [])]) for c in class_ids]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n")
    return file


def folder_tree(root: Path, names: Iterable[str], per_class: int, kind: str = "JPEG") -> Path:
    """`class/image` below `root`."""
    ending = {"JPEG": "jpg", "PNG": "png"}[kind]
    for name in names:
        for place in range(per_class):
            put(root / name / f"{place}.{ending}", kind=kind)
    return root


def aircraft(root: Path, classes: int, per_class: int) -> Path:
    """FGVC-Aircraft; variants contain spaces and slashes, and every image ends in a white banner of 20 rows."""
    lists: dict[str, list[str]] = {"trainval": [], "test": []}
    for label in range(classes):
        for place in range(per_class):
            number = f"{label:03d}{place:04d}"
            pixels = np.random.default_rng(next(_numbers)).integers(0, 120, (60, 50, 3), dtype=np.uint8)
            pixels[-20:] = 255
            file = root / "data" / "images" / f"{number}.jpg"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(file, quality=95)
            lists["test" if place % 3 == 0 else "trainval"].append(f"{number} Model F/A-{label} B")
    for part, lines in lists.items():
        (root / "data" / f"images_variant_{part}.txt").write_text("\n".join(lines) + "\n")
    return root


def birds(root: Path, classes: int, per_class: int) -> Path:
    """CUB-200-2011."""
    home = root / "CUB_200_2011"
    paths, labels, names, number = [], [], [], 0
    for label in range(1, classes + 1):
        name = f"{label:03d}.Bird_{label}"
        names.append(f"{label} {name}")
        for place in range(per_class):
            number += 1
            put(home / "images" / name / f"Bird_{place:04d}.jpg")
            paths.append(f"{number} {name}/Bird_{place:04d}.jpg")
            labels.append(f"{number} {label}")
    for file, lines in (("images", paths), ("image_class_labels", labels), ("classes", names)):
        (home / f"{file}.txt").write_text("\n".join(lines) + "\n")
    return root


def cars_devkit(root: Path, classes: int, per_class: int) -> Path:
    """Cars-196 with its devkit: training and test images, annotations in Matlab files."""
    (root / "devkit").mkdir(parents=True)
    for part, file in (("train", "devkit/cars_train_annos.mat"), ("test", "cars_test_annos_withlabels.mat")):
        places = [(c, p) for c in range(1, classes + 1) for p in range(per_class) if (p % 2 == 0) == (part == "train")]
        rows = np.zeros(len(places), dtype=[("class", object), ("fname", object)])
        for row, (label, _) in enumerate(places):
            rows[row] = (label, f"{row + 1:05d}.jpg")
            put(root / f"cars_{part}" / f"{row + 1:05d}.jpg")
        savemat(root / file, {"annotations": rows})
    savemat(root / "devkit" / "cars_meta.mat", {"class_names": np.array([f"Car {c}" for c in range(classes)], object)})
    return root


def cars_single(root: Path, classes: int, per_class: int) -> Path:
    """Cars-196 as one folder with `cars_annos.mat`."""
    rows = np.zeros(classes * per_class, dtype=[("relative_im_path", object), ("class", object)])
    for row in range(len(rows)):
        rows[row] = (f"car_ims/{row:06d}.jpg", row % classes + 1)
        put(root / "car_ims" / f"{row:06d}.jpg")
    names = np.array([f"Car {label}" for label in range(classes)], object)
    savemat(root / "cars_annos.mat", {"annotations": rows, "class_names": names})
    return root


def tiered_packed(root: Path, per_class: int, *, images: str, labels: str, size: int = 12) -> dict[str, np.ndarray]:
    """TieredImageNet's packs with 2, 1 and 2 classes; gives the true RGB pixels of each split."""
    root.mkdir(parents=True, exist_ok=True)
    pixels = {}
    for stem, class_ids in (("train", SEEN), ("val", VAL), ("test", TEST)):
        label = np.repeat(np.arange(len(class_ids)), per_class)
        random = np.random.default_rng(next(_numbers))
        rgb = random.integers(0, 256, (len(label), size, size, 3), dtype=np.uint8)
        write_pixels(root, f"{stem}_images", rgb, images)
        facts = {
            "label_specific": label.astype(np.int32),
            "label_general": np.zeros(len(label), np.int32),
            "label_specific_str": [f"crane of {stem}" for _ in class_ids],
            "label_general_str": [f"super {stem}"],
        }
        facts = facts if labels == "specific" else {"labels": label.tolist()}
        (root / f"{stem}_labels.pkl").write_bytes(pickle.dumps(facts, protocol=2))
        pixels[stem] = rgb
    return pixels


def write_pixels(root: Path, stem: str, rgb_NHWC: np.ndarray, kind: str) -> None:
    """Write true pixels as OpenCV's users do: blue first in an npz, right in a PNG."""
    if kind == "npz":
        np.savez(root / f"{stem}.npz", images=rgb_NHWC[..., ::-1])
    elif kind == "compressed":
        np.savez_compressed(root / f"{stem}.npz", images=rgb_NHWC[..., ::-1])
    else:
        files = []
        for rgb in rgb_NHWC:
            stream = io.BytesIO()
            Image.fromarray(rgb).save(stream, "PNG")
            files.append(np.frombuffer(stream.getvalue(), np.uint8).reshape(-1, 1))
        (root / f"{stem}_png.pkl").write_bytes(pickle.dumps(files, protocol=2))
