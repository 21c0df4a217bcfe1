"""Raw datasets that users bring: damaged and oversized images, lists that lead out of their folder, hostile packs."""

import io
import os
import pickle
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.bad_inputs.asking import Damage, Refused, RunsCode, params, several
from tests.preparation import raw_trees
from tests.preparation.raw_trees import SEEN, TEST, VAL

SPLITS = "stages plan && stages splits mini"
FOLDER = {"root": "raw", "classes": [1, 1, 1], "extra": 4}


def source(name: str, **options: object) -> Damage:
    """params.yaml with a raw source below `raw`."""
    return params(datasets__mini__source=name, datasets__mini__options=options)


def folder(spoil: Callable[[Path], object], **options: object) -> Damage:
    """An image folder of three classes, spoiled."""

    def make(here: Path) -> None:
        spoil(raw_trees.folder_tree(here / "raw", "abc", 24))

    return several(make, source("image_folder", **(FOLDER | options)))


def image(content: bytes) -> Damage:
    """An image folder with this behind the name of its fourth picture."""
    return folder(lambda raw: [(raw / name / "3.jpg").write_bytes(content) for name in "abc"])


def picture(size: tuple[int, int], mode: str = "1", kind: str = "PNG") -> bytes:
    stream = io.BytesIO()
    Image.new(mode, size).save(stream, kind)
    return stream.getvalue()


def lists(row: tuple[str, str], **options: object) -> Damage:
    """MiniImageNet whose training list has one more row."""

    def make(here: Path) -> None:
        raw_trees.ilsvrc(here / "raw" / "train", (*SEEN, *VAL, *TEST), 16)
        raw_trees.class_table(here / "raw" / "classes.tsv")
        listed = raw_trees.mini_lists(here / "raw" / "lists", [2, 3, 5], "ilsvrc")
        with (listed / "train.csv").open("a") as stream:
            stream.write(",".join(row) + "\n")

    known = {"root": "raw/train", "lists": "raw/lists", "classes": "raw/classes.tsv", "per_class": 3}
    return several(make, source("miniimagenet", **known, extra_per_half=2, **options))


def copy(spoil: Callable[[Path], object], **options: object) -> Damage:
    """MiniImageNet as it is passed around, spoiled."""

    def make(here: Path) -> None:
        raw_trees.class_table(here / "classes.tsv")
        spoil(raw_trees.mini_copy(here / "raw", 8))

    known = {"root": "raw", "classes": "classes.tsv", "per_class": 8, "held_out": [2, 2]}
    return several(make, source("miniimagenet", **(known | options)))


def half_archive(raw: Path) -> None:
    """An archive beside the folder of which half has arrived."""
    with tarfile.open(raw.parent / "half.tgz", "w:gz") as file:
        file.add(raw, "mini")
    content = (raw.parent / "half.tgz").read_bytes()
    (raw.parent / "half.tgz").write_bytes(content[: len(content) // 2])


def all_alike(raw: Path) -> None:
    """A class of files that differ and pictures that do not."""
    for number in range(24):
        Image.new("L", (20, 20), 200).save(raw / "b" / f"{number}.jpg", quality=60 + number)


def birds(here: Path) -> None:
    """Heterogeneous whose list of birds leads out of the folder."""
    raw_trees.birds(here / "raw" / "birds", 3, 4)
    raw_trees.aircraft(here / "raw" / "aircraft", 3, 4)
    listed = here / "raw" / "birds" / "CUB_200_2011" / "images.txt"
    listed.write_text(listed.read_text().replace("001.Bird_1/Bird_0000.jpg", "../../../../params.yaml"))
    source("heterogeneous", **{name: f"raw/{name}" for name in ("aircraft", "cars", "birds", "dogs", "indoor")})(here)


def packed(labels: object, npz: bytes = b"") -> Damage:
    """TieredImageNet's packed files: this pickle as labels, this as images."""

    def make(here: Path) -> None:
        (here / "raw").mkdir()
        for stem in ("train", "val", "test"):
            (here / "raw" / f"{stem}_labels.pkl").write_bytes(pickle.dumps(labels, protocol=2))
            (here / "raw" / f"{stem}_images.npz").write_bytes(npz)

    return several(make, source("tieredimagenet_packed", root="raw"))


def archive(name: str, content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr(name, content)
    return stream.getvalue()


def claimed(shape: tuple[int, ...]) -> bytes:
    """An npz member that claims more pixels than it has."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return stream.getvalue() + b"\0" * 1000


def loop(raw: Path) -> None:
    """Folders that are links to themselves and to each other."""
    for name in "abc":
        for file in (raw / name).iterdir():
            file.unlink()
        (raw / name / "self.jpg").symlink_to("self.jpg")
        (raw / name / "up").symlink_to("..")


LABELS = {"labels": np.zeros(4, np.int32)}
TABLE: dict[str, Refused] = {
    "no folder": (source("image_folder", **(FOLDER | {"root": "nowhere"})), "nowhere: cannot be listed"),
    "a file for a folder": (source("image_folder", **(FOLDER | {"root": "params.yaml"})), "cannot be listed"),
    "a device for a folder": (source("image_folder", **(FOLDER | {"root": "/dev/zero"})), "cannot be listed"),
    "an empty folder": (
        several(lambda here: (here / "raw").mkdir(), source("image_folder", **FOLDER)),
        "raw: holds no folders",
    ),
    "a class without images": (folder(lambda raw: (raw / "d").mkdir()), "d holds no JPEG or PNG"),
    "links in circles": (folder(loop), "raw"),
    "one picture over and over": (
        folder(lambda raw: [raw_trees.put(raw / name / f"{n}.jpg", 1) for name in "abc" for n in range(24)]),
        "ask for fewer classes or fewer images",
    ),
    "more classes than folders": (folder(lambda raw: None, classes=[9, 9, 9]), "expected 9 such classes"),
    "more images than files": (folder(lambda raw: None, per_class=10**9), "ask for fewer classes or fewer"),
    "a negative number of images": (folder(lambda raw: None, extra=-4), "extra"),
    "an empty image": (image(b""), "3.jpg: is empty"),
    "a truncated image": (image(raw_trees.encoded(5)[:300]), "3.jpg: cannot be decoded"),
    "no image": (image(b"#!/bin/sh\ntouch ran\n"), "3.jpg: is no picture"),
    "an image in a format of its own": (image(picture((8, 8), "RGB", "TIFF")), "3.jpg: is no picture"),
    "an image of a thousand million pixels": (image(picture((32_000, 32_000))), "more than 89478485 pixels"),
    "a class of one picture in many files": (folder(all_alike), "images of class b are alike once packed"),
    "a crop there is not": (folder(lambda raw: None, crop="center"), "crop is 'center', expected"),
    "a copy without a class": (
        copy(lambda raw: [file.unlink() for file in (raw / "images").glob(f"{TEST[0]}*")]),
        f"class {TEST[0]} is missing",
    ),
    "a copy without lists": (copy(lambda raw: shutil.rmtree(raw / "split")), "raw: has no lists"),
    "a copy with a pickle for a list": (
        copy(lambda raw: (raw / "split" / "val.csv").write_bytes(pickle.dumps(RunsCode()))),
        "val.csv: ",
    ),
    "half of an archive": (copy(half_archive, root="half.tgz"), "half.tgz: is no whole archive"),
    "text for an archive": (copy(lambda raw: None, root="params.yaml"), "params.yaml: is no whole archive"),
    "a device for an archive": (copy(lambda raw: None, root="/dev/null"), "/dev/null: cannot be listed"),
    "more held out than there is": (copy(lambda raw: None, held_out=[8, 8]), "expected 16 for seen_val"),
    "an image below another's name": (
        folder(lambda raw: os.rename(raw / "a" / "3.jpg", os.fsencode(raw / "a") + b"/\xff.jpg")),
        "expected names in UTF-8",
    ),
    "a path in a list": (lists(("../../params.yaml", SEEN[0])), "names '../../params.yaml'"),
    "another class in a list": (lists((f"{SEEN[0]}_2.JPEG", "n1/../..")), "of class 'n1/../..'"),
    "an image twice in a list": (lists((f"{SEEN[0]}_11.JPEG", SEEN[0])), "twice in the list train.csv"),
    "a path in another list": (birds, "which lies outside"),
    "a pickle that runs code": (packed({"labels": RunsCode()}), "posix.mkdir, expected plain containers"),
    "a pickle of something else": (packed([1, 2]), "holds list, expected a dictionary"),
    "an archive that is none": (packed(LABELS, b"PK\x03\x04nothing"), "cannot be read"),
    "an archive that leads out": (packed(LABELS, archive("../../ran.npy", b"x")), "an array called images"),
    "an archive that claims too much": (
        packed(LABELS, archive("images.npy", claimed((10**6, 840, 840, 3)))),
        "cannot be read",
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_raw_data_gets_one_sentence(name: str, judge: Callable[..., None]) -> None:
    damage, expected = TABLE[name]
    judge(damage, SPLITS, expected)
