"""The doctor's look at every picture: does it decode, what kind of file is it, which pictures are the same."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from repro.errors import BadInput
from repro.preparation.collection import Collection, Picture
from repro.preparation.decoding import Decoded, decode, is_small_square
from repro.preparation.doctor.findings import Finding
from repro.preparation.images import available_cores, read_content, shared_contents
from repro.preparation.packing import ALIKE

SHOWN = 3  # examples named in a finding
CHUNK = 1024  # images handed to the threads at a time
SIZE = 16  # pixels; enough to tell photographs apart, and a JPEG is decoded at a small scale for it
ORDINARY = ("greyscale, made RGB", "CMYK, made RGB")  # conversions that change nothing worth a warning


@dataclass
class Looks:
    """What was found, by place in the collection where it concerns one picture."""

    contents: dict[int, str] = field(default_factory=dict)  # hashes of files
    pixels: dict[int, str] = field(default_factory=dict)  # hashes of pictures
    unreadable: list[str] = field(default_factory=list)
    notes: dict[str, list[str]] = field(default_factory=dict)  # note → pictures
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)
    first_of_class: dict[str, np.ndarray] = field(default_factory=dict)
    class_sizes: Counter[str] = field(default_factory=Counter)
    varied: set[str] = field(default_factory=set)  # classes with pictures that differ

    def add(self, place: int, picture: Picture, decoded: Decoded) -> None:
        """Take one decoded picture in."""
        self.pixels[place] = hashlib.sha256(decoded.pixels_HWC.tobytes()).hexdigest()
        self.sizes[decoded.shown] += 1
        for note in decoded.notes:
            self.notes.setdefault(note, []).append(str(picture.raw))
        pixels = decoded.pixels_HWC.astype(np.int16)
        first = self.first_of_class.setdefault(picture.class_name, pixels)
        self.class_sizes[picture.class_name] += 1
        if picture.class_name not in self.varied and np.abs(pixels - first).max() > ALIKE:
            self.varied.add(picture.class_name)

    def findings(self, collection: Collection) -> Iterator[Finding]:
        """The rows about files and pictures."""
        expected = "every image decodes"
        if self.unreadable:
            examples = " | ".join(self.unreadable[:SHOWN])
            yield Finding("files", f"{len(self.unreadable):,} bad: {examples}", expected, "fail")
        else:
            yield Finding("files", "all decode", expected, "pass")
        if self.sizes:
            yield Finding("picture sizes", _spread(list(self.sizes)), "any", "pass")
        for note, pictures in sorted(self.notes.items()):
            seen = f"{len(pictures):,} {note}, such as {pictures[0]}"
            kind = note.partition(",")[0]
            yield Finding(f"{kind} pictures", seen, "any", "pass" if note in ORDINARY else "warn")
        yield from self._crop(collection)
        yield from self._variety()
        yield from self._same_pictures(collection)

    def _crop(self, collection: Collection) -> Iterator[Finding]:
        small = sum(count for size, count in self.sizes.items() if is_small_square(*size))
        if collection.crop != "squashed" and small:
            seen = f"{collection.crop} has no effect on {small:,} pictures, which are small squares already"
            yield Finding("crop", seen, "whole photographs", "warn")

    def _variety(self) -> Iterator[Finding]:
        expected = "pictures that differ in every class"
        alike = sorted(name for name, count in self.class_sizes.items() if count > 1 and name not in self.varied)
        if alike:
            seen = f"all {self.class_sizes[alike[0]]:,} images of class {alike[0]} are alike"
            more = f", and so are those of {len(alike) - 1} more classes" if len(alike) > 1 else ""
            yield Finding("variety", seen + more, expected, "fail")

    def _same_pictures(self, collection: Collection) -> Iterator[Finding]:
        """Pictures in two roles whose files differ: saved again, or with other data beside the picture."""
        groups: dict[str, list[int]] = {}
        for place, digest in self.pixels.items():
            groups.setdefault(digest, []).append(place)
        pairs = [
            f"{collection.pictures[place].raw} = {collection.pictures[group[0]].raw}"
            for group in groups.values()
            for place in group[1:]
            if collection.pictures[place].role != collection.pictures[group[0]].role
            and self.contents[place] != self.contents[group[0]]
        ]
        if pairs:
            seen = f"{len(pairs):,} in two roles, saved differently: {' | '.join(pairs[:SHOWN])}"
            yield Finding("same pictures", seen, "no picture in two roles", "warn")


def look_at_all(collection: Collection, progress: Callable[[int, int], None]) -> Looks:
    """Read and decode everything."""
    looks = Looks()
    pictures = collection.pictures
    with ThreadPoolExecutor(available_cores()) as pool:
        for start in range(0, len(pictures), CHUNK):
            chunk = pictures[start : start + CHUNK]
            for place, (picture, found) in enumerate(zip(chunk, pool.map(_look, chunk), strict=True), start):
                digest, decoded, problem = found
                if digest:
                    looks.contents[place] = digest
                if decoded:
                    looks.add(place, picture, decoded)
                if problem:
                    looks.unreadable.append(problem)
            progress(start + len(chunk), len(pictures))
    return looks


def compare(collection: Collection) -> dict[int, str]:
    """Content hashes of the images that share their content, without reading the others whole."""
    shared = shared_contents([picture.raw for picture in collection.pictures])
    return {place: shared[each.raw] for place, each in enumerate(collection.pictures) if each.raw in shared}


def _look(picture: Picture) -> tuple[str | None, Decoded | None, str | None]:
    """Content hash, decoded picture, and what is wrong."""
    try:
        content = read_content(picture.raw)
    except BadInput as error:
        return None, None, str(error)
    digest = hashlib.sha256(content).hexdigest() if content else None
    try:
        return digest, decode(picture.raw, content, SIZE), None
    except BadInput as error:
        return digest, None, str(error)


def _spread(sizes: list[tuple[int, int]]) -> str:
    if len(sizes) <= 2:
        return " and ".join(f"{width}×{height}" for width, height in sizes)
    smallest, largest = (choose(sizes, key=lambda size: size[0] * size[1]) for choose in (min, max))
    return "{}×{} to {}×{}".format(*smallest, *largest)
