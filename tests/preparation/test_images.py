"""Decoding and packing: right pixels, bounded and resumable work, and one sentence for every bad file."""

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from repro.data.dataset import MANIFEST, open_dataset
from repro.errors import BadInput
from repro.preparation import packing
from repro.preparation.collection import Collection
from repro.preparation.decoding import to_pixels
from repro.preparation.images import RawImage, read_content, shared_contents, without_repeats
from repro.preparation.packing import BLOCK, pack, work_folder
from repro.preparation.sources import collect
from tests.counting import Count
from tests.paths import ROOT
from tests.preparation.raw_trees import encoded, folder_tree, put

SHARED = ROOT.parent / "shared" / "data"
FOLDER_OPTIONS = {"classes": [3, 2, 2], "extra": 4}


def folder_collection(root: Path, seed: int = 0) -> Collection:
    return collect("image_folder", "tiny", seed, {"root": root, **FOLDER_OPTIONS})


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Seven classes of 30 images: four blocks."""
    return folder_tree(tmp_path / "raw", [f"class {name}" for name in "abcdefg"], 30)


def digest_of(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


def test_packed_pixels_are_the_decoded_files_and_the_manifest_has_their_hashes(tree: Path, tmp_path: Path):
    pack(folder_collection(tree), tmp_path / "out", size=10)
    dataset, manifest = open_dataset(tmp_path / "out"), pd.read_parquet(tmp_path / "out" / MANIFEST)
    assert dataset.images_NHWC.shape == (210, 10, 10, 3)
    for row in (0, 63, 64, 150, 209):
        file = tree / manifest["source"][row]
        assert manifest["source_sha256"][row] == hashlib.sha256(file.read_bytes()).hexdigest()
        assert manifest["sha256"][row] == hashlib.sha256(dataset.images_NHWC[row].tobytes()).hexdigest()
        with Image.open(file) as image:
            direct = np.asarray(image.convert("RGB").resize((10, 10), Image.Resampling.BILINEAR))
        assert np.array_equal(dataset.images_NHWC[row], direct)
        assert manifest["class"][row] == file.parent.name
    assert set(os.listdir(tmp_path)) == {"raw", "out"}


def test_two_packs_are_equal_to_the_byte_whatever_the_number_of_workers(tree: Path, tmp_path: Path):
    pack(folder_collection(tree), tmp_path / "one", size=10, workers=1)
    pack(folder_collection(tree), tmp_path / "two", size=10, workers=5)
    assert digest_of(tmp_path / "one") == digest_of(tmp_path / "two")


def test_progress_ends_at_the_total(tree: Path, tmp_path: Path):
    calls: list[tuple[int, int]] = []
    pack(folder_collection(tree), tmp_path / "out", size=10, progress=lambda done, total: calls.append((done, total)))
    assert calls[0] == (0, 210)
    assert calls[-1] == (210, 210)
    assert calls == sorted(calls)


def test_a_large_jpeg_decoded_at_reduced_scale_stays_close_to_the_full_decode(tmp_path: Path):
    ramp = np.linspace(0, 255, 400)
    pixels = np.stack(np.broadcast_arrays(ramp, ramp[:300, None], 128 * np.ones((300, 400))), -1).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "large.jpg", quality=95)
    raw = RawImage(tmp_path / "large.jpg", "large.jpg")
    ours = to_pixels(raw, read_content(raw), 20).astype(int)
    full = np.asarray(Image.fromarray(pixels).resize((20, 20), Image.Resampling.BILINEAR)).astype(int)
    assert np.abs(ours - full).max() <= 4


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1", "LA"])
def test_every_colour_mode_becomes_rgb(tmp_path: Path, mode: str):
    picture = Image.fromarray(np.full((8, 8, 3), 200, np.uint8)).convert(mode)
    file = tmp_path / ("x.jpg" if mode == "CMYK" else "x.png")
    picture.save(file)
    raw = RawImage(file, file.name)
    pixels = to_pixels(raw, read_content(raw), 4)
    assert pixels.shape == (4, 4, 3)
    assert pixels.dtype == np.uint8


def test_a_banner_is_cropped_at_full_and_at_reduced_scale(tmp_path: Path):
    for height in (60, 620):
        pixels = np.zeros((height, 300, 3), np.uint8)
        pixels[-20:] = 255
        Image.fromarray(pixels).save(tmp_path / "x.jpg", quality=95)
        raw = RawImage(tmp_path / "x.jpg", "x.jpg", crop_bottom=20)
        assert to_pixels(raw, read_content(raw), 16).max() < 60


def test_a_killed_pack_resumes_and_ends_with_the_same_bytes(tmp_path: Path):
    tree = folder_tree(tmp_path / "raw", [f"c{number}" for number in range(7)], 60)
    script = (
        "import time; from pathlib import Path\n"
        "from repro.preparation import packing; from repro.preparation.sources import collect\n"
        "slow = packing.decode\n"
        "packing.decode = lambda *a: (time.sleep(0.01), slow(*a))[1]\n"
        f"c = collect('image_folder', 'tiny', 0, dict(root={str(tree)!r}, classes=[3, 2, 2], extra=4))\n"
        f"packing.pack(c, Path({str(tmp_path / 'out')!r}), size=10, workers=1)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    journal = work_folder(tmp_path / "out") / "journal"
    deadline = time.monotonic() + 60
    while not (journal.exists() and journal.read_text().count("\n") >= 2):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "out").exists()
    decoded: list[int] = []
    pack(folder_collection(tree), tmp_path / "out", size=10, progress=lambda done, total: decoded.append(done))
    assert decoded[0] >= 2 * BLOCK
    pack(folder_collection(tree), tmp_path / "fresh", size=10)
    assert digest_of(tmp_path / "out") == digest_of(tmp_path / "fresh")


def test_a_changed_source_file_starts_anew(tree: Path, tmp_path: Path):
    collection = folder_collection(tree)
    bad = collection.pictures[-1].raw.origin
    whole = bad.read_bytes()
    bad.write_bytes(whole[:80])
    with pytest.raises(BadInput, match="cannot be decoded"):
        pack(collection, tmp_path / "out", size=10, workers=1)
    assert (work_folder(tmp_path / "out") / "journal").read_text()
    bad.write_bytes(whole)
    calls: list[int] = []
    pack(folder_collection(tree), tmp_path / "out", size=10, progress=lambda done, total: calls.append(done))
    assert calls[0] == 0
    pack(folder_collection(tree), tmp_path / "fresh", size=10)
    assert digest_of(tmp_path / "out") == digest_of(tmp_path / "fresh")


def test_blocks_that_were_damaged_on_disk_are_decoded_again(tree: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(packing, "describe_images", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        pack(folder_collection(tree), tmp_path / "out", size=10)
    monkeypatch.undo()
    work = work_folder(tmp_path / "out")
    with (work / "images.npy").open("r+b") as stream:
        stream.seek(-1, os.SEEK_END)
        last = stream.read(1)[0]
        stream.seek(-1, os.SEEK_END)
        stream.write(bytes([last ^ 255]))
    with (work / "journal").open("a") as stream:
        stream.write(json.dumps({"number": 3})[:-4])
    calls: list[int] = []
    pack(folder_collection(tree), tmp_path / "out", size=10, progress=lambda done, total: calls.append(done))
    assert calls[0] == 3 * BLOCK
    pack(folder_collection(tree), tmp_path / "fresh", size=10)
    assert digest_of(tmp_path / "out") == digest_of(tmp_path / "fresh")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["describe_images", "key", "journal", "put_in_place"])
def test_a_pack_stopped_at_one_of_its_last_steps_is_made_whole_by_the_next(
    step: str, when: str, tree: Path, tmp_path: Path, monkeypatch, faults: Count
):
    def stopped(*arguments, **options):
        if owner is Path and arguments[0].name != step:
            return real(*arguments, **options)
        if when == "after":
            real(*arguments, **options)
        raise KeyboardInterrupt

    faults.tried()
    owner, name = (packing, step) if hasattr(packing, step) else (Path, "unlink")
    real = getattr(owner, name)
    monkeypatch.setattr(owner, name, stopped)
    with pytest.raises(KeyboardInterrupt):
        pack(folder_collection(tree), tmp_path / "out", size=10)
    monkeypatch.undo()
    pack(folder_collection(tree), tmp_path / "out", size=10)
    pack(folder_collection(tree), tmp_path / "fresh", size=10)
    assert digest_of(tmp_path / "out") == digest_of(tmp_path / "fresh")
    assert set(os.listdir(tmp_path)) == {"raw", "fresh", "out"}
    faults.survived()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (encoded(1)[:300], "cannot be decoded"),
        (b"", "is empty, expected a JPEG or PNG"),
        (b"<html>not an image</html>", "is no picture"),
        (encoded(1, kind="PNG")[:200], "cannot be decoded"),
    ],
)
def test_a_bad_image_is_named_and_no_dataset_appears(tree: Path, tmp_path: Path, content: bytes, message: str):
    bad = tree / "class c" / "7.jpg"
    collection = folder_collection(tree)
    bad.write_bytes(content)
    with pytest.raises(BadInput, match=message) as raised:
        pack(collection, tmp_path / "out", size=10)
    assert str(bad) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_a_decompression_bomb_is_refused(tmp_path: Path):
    header = encoded(1, kind="PNG")
    width = (100_000).to_bytes(4, "big")
    chunk = b"IHDR" + width + width + header[24:29]
    bomb = header[:12] + chunk + zlib.crc32(chunk).to_bytes(4, "big") + header[33:]
    (tmp_path / "bomb.png").write_bytes(bomb)
    raw = RawImage(tmp_path / "bomb.png", "bomb.png")
    with pytest.raises(BadInput, match=r"bomb.png: more than 89478485 pixels"):
        to_pixels(raw, read_content(raw), 10)


def test_an_unreadable_image_is_named(tree: Path, tmp_path: Path, monkeypatch):
    def refuse(file: Path) -> bytes:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))

    collection = folder_collection(tree)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(BadInput, match=r"\.jpg: cannot be read \(Permission denied\)"):
        pack(collection, tmp_path / "out", size=10)


def test_too_little_free_space_is_said_before_anything_is_written(tree: Path, tmp_path: Path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=50_000)
    monkeypatch.setattr(packing.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(BadInput, match=r"0\.12 MB needed for the packed images and 0\.05 MB free"):
        pack(folder_collection(tree), tmp_path / "out", size=10)
    assert not work_folder(tmp_path / "out").exists()


def test_a_disk_that_fills_up_on_the_way_keeps_finished_work(tree: Path, tmp_path: Path, monkeypatch):
    calls = []

    def fills_up(*arguments: object) -> int:
        calls.append(arguments)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments)

    real = os.pwrite
    monkeypatch.setattr(packing.os, "pwrite", fills_up)
    with pytest.raises(BadInput, match="out: no space left for it; free some space and run the same command again"):
        pack(folder_collection(tree), tmp_path / "out", size=10, workers=1)
    monkeypatch.undo()
    assert not (tmp_path / "out").exists()
    calls: list[int] = []
    pack(folder_collection(tree), tmp_path / "out", size=10, progress=lambda done, total: calls.append(done))
    assert calls[0] == 2 * BLOCK


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_target_that_refuses_is_named(tree: Path, tmp_path: Path, monkeypatch, number: int):
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), str(path))

    collection = folder_collection(tree)
    monkeypatch.setattr(Path, "mkdir", refuse)
    said = rf"out cannot be written \({os.strerror(number)}\); expected a folder that you may write to"
    with pytest.raises(BadInput, match=said):
        pack(collection, tmp_path / "out", size=10)


def test_shared_contents_are_found_among_files_of_equal_size(tmp_path: Path):
    a, copy = put(tmp_path / "a.jpg", 1), put(tmp_path / "copy.jpg", 1)
    same_tail = tmp_path / "tail.jpg"
    same_tail.write_bytes(b"x" + a.read_bytes()[1:] if a.stat().st_size > 4096 else a.read_bytes()[:-1] + b"x")
    images = [RawImage(file, file.name) for file in (a, same_tail, copy)]
    images.append(RawImage(a.read_bytes(), "memory#0"))
    shared = shared_contents(images)
    assert set(shared) == {images[0], images[2], images[3]}
    assert set(shared.values()) == {hashlib.sha256(a.read_bytes()).hexdigest()}
    assert without_repeats(images) == [images[0], images[1]]


@pytest.mark.skipif(not (SHARED / "grocery81_84.tar").exists(), reason="no ../shared/data/grocery81_84.tar here")
def test_grocery_photos_pack_through_the_folder_source(tmp_path: Path):
    with tarfile.open(SHARED / "grocery81_84.tar") as archive:
        members = [member for member in archive if member.name.split("/")[0] < "B"]
        archive.extractall(tmp_path / "raw", members, filter="data")
    classes = len(os.listdir(tmp_path / "raw"))
    options = {"root": tmp_path / "raw", "classes": [classes - 4, 2, 2], "extra": 6}
    pack(collect("image_folder", "grocery", 0, options), tmp_path / "out", size=84)
    dataset = open_dataset(tmp_path / "out")
    assert dataset.image_shape == (84, 84, 3)
    assert len(dataset.roles["seen_val"]) == len(dataset.roles["seen_test"]) == 3 * (classes - 4)
    assert len(dataset.labels_N) == len(members) - dataset.header.provenance["repeated_images_dropped"]
    assert 40 < dataset.images_NHWC.mean() < 215


@pytest.mark.skipif(not (SHARED / "omniglot.tar.xz").exists(), reason="no ../shared/data/omniglot.tar.xz here")
def test_omniglot_alphabets_pack_as_domains_of_one_class_each(tmp_path: Path):
    with tarfile.open(SHARED / "omniglot.tar.xz") as archive:
        wanted = ("images_background/Alphabet_of_the_Magi/", "images_background/Anglo-Saxon_Futhorc/")
        members = [member for member in archive if member.name.startswith(wanted)]
        archive.extractall(tmp_path, members, filter="data")
    root = tmp_path / "images_background"
    for folder in root.glob("*/*"):  # every alphabet calls its first character the same
        folder.rename(folder.parent / f"{folder.parent.name}-{folder.name}")
    options = {"root": root, "classes": [10, 5, 5], "extra": 6, "per_class": 12}
    pack(collect("image_folder", "omniglot", 0, options), tmp_path / "out", size=28)
    dataset = open_dataset(tmp_path / "out")
    assert dataset.header.domain_rule == "per_class"
    assert dataset.seen_classes == 20
    assert {role: len(rows) for role, rows in dataset.roles.items()} == {
        "train": 240,
        "val": 120,
        "test": 120,
        "seen_val": 60,
        "seen_test": 60,
    }
    assert set(np.unique(dataset.images_NHWC[0, ..., 0] == dataset.images_NHWC[0, ..., 1])) == {True}


def test_a_file_that_vanished_since_it_was_listed_is_named(tree: Path, tmp_path: Path):
    collection = folder_collection(tree)
    (tree / "class d" / "5.jpg").unlink()
    with pytest.raises(BadInput, match=r"class d/5\.jpg: cannot be read \(No such file or directory\)"):
        pack(collection, tmp_path / "out", size=10)
    assert not (tmp_path / "out").exists()
