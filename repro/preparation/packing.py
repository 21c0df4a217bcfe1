"""A collection becomes a dataset folder: decoded in parallel straight into the final array, resumed after a stop.

Beside the folder grows a work folder with the array and a journal: a line per finished block of images, with the hash
of each image's pixels and of its source. A later run with the same collection, the same source files and
the same size verifies the blocks that the journal names and decodes the rest; anything else starts anew. The work
folder becomes the dataset folder by one rename after manifest and description are written.
"""

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from repro.data.dataset import IMAGES, Header, describe_images
from repro.errors import BadInput
from repro.files import disk_errors_as_bad_input, put_in_place
from repro.preparation.collection import Collection, Picture
from repro.preparation.decoding import Crop, decode, is_small_square
from repro.preparation.images import available_cores, read_content, state_of

log = logging.getLogger(__name__)

BLOCK = 64  # images: 1.4 MB of pixels at 84×84, so that memory stays bounded and a stop loses little
CHANNELS = 3
ALIKE = 2  # grey levels: images that differ by no more, everywhere, are taken for one picture
VERSION = 2  # of decoding and journal: work done by another version is not resumed
ROW_ALLOWANCE = 256  # bytes per image for manifest and journal, when asking for free space


@dataclass(frozen=True)
class Block:
    """A finished block: its number, and the hashes of each image's pixels and of its source's content.

    `small` of these are small squares, which no crop cuts.
    """

    number: int
    pixels: list[str]
    contents: list[str]
    small: int


def pack(
    collection: Collection,
    folder: Path,
    *,
    size: int,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Decode all pictures to size×size RGB and write the whole dataset folder or none.

    `progress` hears (images done, images in all), from this thread. Raises BadInput for an image that cannot be
    decoded, for a class whose images are all alike, and for a disk that is full or refuses; finished work stays in the
    work folder for the next run.
    """
    work = work_folder(folder)
    total = len(collection.pictures)
    shape = (size, size, CHANNELS)
    key = _key(collection, size)
    with disk_errors_as_bad_input(folder):
        _require_space(work, total * (int(np.prod(shape)) + ROW_ALLOWANCE))
        finished = _open_work(work, key, (total, *shape))
        done = sum(len(block.contents) for block in finished.values())
        progress(done, total)
        for block in _decode_rest(collection, work, size, finished, workers or available_cores()):
            finished[block.number] = block
            done += len(block.contents)
            progress(done, total)
        manifest = collection.manifest()
        in_order = [finished[number] for number in sorted(finished)]
        manifest["sha256"] = [digest for block in in_order for digest in block.pixels]
        manifest["source_sha256"] = [digest for block in in_order for digest in block.contents]
        _require_variety(work / IMAGES, collection.header, manifest)
        describe_images(work, _with_crop(collection, sum(block.small for block in in_order)), manifest, shape)
        (work / "key").unlink()  # first: a folder without it is never resumed
        (work / "journal").unlink()
        put_in_place(work, folder)


def work_folder(folder: Path) -> Path:
    """Where `pack` keeps unfinished work for `folder`."""
    return folder.parent / f".{folder.name}.packing"


def _decode_rest(
    collection: Collection, work: Path, size: int, finished: dict[int, Block], workers: int
) -> Iterator[Block]:
    """Decode the blocks that are not finished, a few ahead of the caller, and yield each once the journal has it."""
    pictures = collection.pictures
    missing = (number for number in range(-(-len(pictures) // BLOCK)) if number not in finished)
    with (work / IMAGES).open("r+b") as array, (work / "journal").open("a", encoding="utf-8") as journal:
        start = os.fstat(array.fileno()).st_size - len(pictures) * size * size * CHANNELS

        def run(number: int) -> Block:
            members = pictures[number * BLOCK : (number + 1) * BLOCK]
            return _decode_block(number, members, size, collection.crop, array.fileno(), start)

        with ThreadPoolExecutor(workers) as pool:
            try:
                running: set[Future[Block]] = {pool.submit(run, number) for number in islice(missing, 2 * workers)}
                while running:
                    ready, running = wait(running, return_when=FIRST_COMPLETED)
                    running |= {pool.submit(run, number) for number in islice(missing, len(ready))}
                    for future in sorted(ready, key=_failed):  # what succeeded is kept before a failure is told
                        block = future.result()
                        journal.write(json.dumps(asdict(block)) + "\n")
                        journal.flush()
                        yield block
            finally:
                pool.shutdown(cancel_futures=True)


def _failed(future: Future[Block]) -> bool:
    return future.exception() is not None


def _decode_block(number: int, pictures: Sequence[Picture], size: int, crop: Crop, array: int, start: int) -> Block:
    """Decode one block and write it into its place in the array (a file descriptor; pixels begin at `start`)."""
    pixels_NHWC = np.empty((len(pictures), size, size, CHANNELS), np.uint8)
    contents, small = [], 0
    for place, picture in enumerate(pictures):
        content = read_content(picture.raw)
        contents.append(hashlib.sha256(content).hexdigest())
        decoded = decode(picture.raw, content, size, crop)
        pixels_NHWC[place] = decoded.pixels_HWC
        small += is_small_square(*decoded.shown)
    # pwrite reports a full disk as an error; a store into a memory map would end the process with a signal.
    left, offset = pixels_NHWC.data.cast("B"), start + number * BLOCK * size * size * CHANNELS
    while left:
        written = os.pwrite(array, left, offset)
        left, offset = left[written:], offset + written
    return Block(number, _hashes(pixels_NHWC), contents, small)


def _require_variety(images: Path, header: Header, manifest: pd.DataFrame) -> None:
    """Raise BadInput for a class whose images are all alike: they were blank, or became it in decoding."""
    images_NHWC = np.load(images, mmap_mode="r")
    for label, rows in manifest.groupby("label").groups.items():
        first = images_NHWC[rows[0]].astype(np.int16)
        others = (np.abs(images_NHWC[row] - first).max() for row in rows[1:])  # stops at the first that differs
        if len(rows) > 1 and all(difference <= ALIKE for difference in others):
            seen = f"all {len(rows):,} images of class {header.classes[label].name} are alike"
            raise BadInput(f"{header.name}: {seen} once packed, such as {manifest['source'][rows[0]]}; replace them")


def _with_crop(collection: Collection, small: int) -> Header:
    """The header with how pictures were cropped; small squares are left whole by every crop, which is said."""
    facts: dict[str, object] = {"crop": collection.crop}
    if collection.crop != "squashed" and small:
        log.warning("%s has no effect on %d pictures, which are small squares already", collection.crop, small)
        facts["crop_without_effect"] = small
    return replace(collection.header, provenance=collection.header.provenance | facts)


def _open_work(work: Path, key: str, shape: tuple[int, ...]) -> dict[int, Block]:
    """Find the blocks that an earlier run with the same key finished; start a new work folder where there is none."""
    if (work / "key").is_file() and (work / "key").read_text() == key:
        finished = _verified_blocks(work)
        log.info("%s: resuming with %d finished blocks", work, len(finished))
        return finished
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    with (work / IMAGES).open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, {"descr": "|u1", "fortran_order": False, "shape": shape})
        stream.truncate(stream.tell() + int(np.prod(shape)))
    (work / "journal").touch()
    (work / "key").write_text(key)  # last: a folder without it is never resumed
    return {}


def _verified_blocks(work: Path) -> dict[int, Block]:
    """The journal's blocks whose pixels in the array are the ones that were written."""
    images_NHWC = np.load(work / IMAGES, mmap_mode="r")
    finished = {}
    for line in (work / "journal").read_text(encoding="utf-8").splitlines():
        try:
            block = Block(**json.loads(line))
        except (ValueError, TypeError):
            continue  # a line cut short when the run was ended
        pixels_NHWC = images_NHWC[block.number * BLOCK : (block.number + 1) * BLOCK]
        if _hashes(pixels_NHWC) == block.pixels:
            finished[block.number] = block
    return finished


def _hashes(pixels_NHWC: np.ndarray) -> list[str]:
    return [hashlib.sha256(np.ascontiguousarray(image_HWC).data).hexdigest() for image_HWC in pixels_NHWC]


def _key(collection: Collection, size: int) -> str:
    """A hash of all that decides the pixels: sources with their sizes and times, their places, the target size."""
    digest = hashlib.sha256(
        json.dumps([VERSION, BLOCK, size, collection.crop, asdict(collection.header)], sort_keys=True).encode()
    )
    for row, picture in zip(collection.manifest().itertuples(index=False), collection.pictures, strict=True):
        digest.update(repr((tuple(row), state_of(picture.raw), picture.raw.crop_bottom)).encode())
    return digest.hexdigest()


def _require_space(work: Path, needed: int) -> None:
    """Raise BadInput where the disk has less room than `needed` bytes, those that earlier work holds among it."""
    place = next(parent for parent in work.parents if parent.exists())
    room = shutil.disk_usage(place).free + sum(file.stat().st_blocks * 512 for file in work.glob("*"))
    if room < needed:
        seen = f"{place}: {needed / 1e6:,.2f} MB needed for the packed images and {room / 1e6:,.2f} MB free"
        raise BadInput(f"{seen}; free some space and run the same command again, finished images are kept")
