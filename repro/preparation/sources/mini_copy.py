"""MiniImageNet as it is passed around: its own 60,000 images in folders or archives, without the rest of ILSVRC-12.

The augmented seen images are held out of the images of the seen classes. The public copy has pictures that occur in
two splits; of such a picture the copy further from the reported numbers is left out: training gives way to validation,
and validation to test.
"""

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from repro.data.dataset import ClassInfo
from repro.errors import BadInput
from repro.preparation.archives import Member
from repro.preparation.augmented_seen import hold_out
from repro.preparation.collection import Picture
from repro.preparation.images import RawImage, shared_contents
from repro.preparation.listing import files_below
from repro.preparation.sources.mini_lists import NAMINGS, FileList

EXPECTED = "MiniImageNet's folder or archives (images such as n0153282900000005.jpg), or ILSVRC-12's training images"
KEPT_FIRST = ("test", "val", "train")  # whose copy of a picture stays


class Copy:
    """The images of the roots by their names, wherever they lie below them."""

    def __init__(self, roots: Sequence[Path]) -> None:
        """List folders and archives. Raises BadInput where they hold no such images, or one of them twice."""
        if not roots:
            raise BadInput(f"root is an empty list, expected {EXPECTED}")
        self.where = " and ".join(map(str, roots))
        self.files: dict[str, Path | Member] = {}
        self.images: dict[str, RawImage] = {}
        for root in roots:
            for path, origin in files_below(root, EXPECTED).items():
                self._add(path, origin)
        if not self.images:
            raise BadInput(
                f"{self.where}: holds {len(self.files):,} files and none is such an image, expected {EXPECTED}"
            )

    def _add(self, path: str, origin: Path | Member) -> None:
        self.files.setdefault(path, origin)
        name = posixpath.basename(path)
        if not any(pattern.fullmatch(name) for pattern in NAMINGS.values()):
            return
        stem = _stem(name)
        if stem in self.images:
            raise BadInput(
                f"{self.images[stem]} and {origin}: the same image twice, expected it once; remove one of them"
            )
        self.images[stem] = RawImage(origin, name)

    def find(self, listed: FileList) -> list[RawImage]:
        """The image that each row of a list names. Raises BadInput where some are not there."""
        absent = [row for row in listed.rows if _stem(row[0]) not in self.images]
        if not absent:
            return [self.images[_stem(filename)] for filename, _ in listed.rows]
        name, class_id = absent[0]
        more = f" and {len(absent) - 1:,} more files" if len(absent) > 1 else ""
        seen = f"{listed.place}: names {name}{more}, not in {self.where}"
        held = next(iter(self.images.values())).source
        if not NAMINGS[listed.naming].fullmatch(held):
            expected = "expected lists and images of the same naming, or all of ILSVRC-12"
            raise BadInput(f"{seen}, which has names such as {held}; {expected}")
        if not any(stem.startswith(class_id) for stem in self.images):
            raise BadInput(
                f"{seen}: class {class_id} is missing; fetch the copy again, or give all its parts as `root`"
            )
        raise BadInput(
            f"{seen}, expected the images of all lists; fetch the copy again, or give all its parts as `root`"
        )

    def unlisted(self, lists: Iterable[FileList]) -> dict[str, Any]:
        """What the lists leave out: how many images, and classes of which they name none."""
        rows = [row for listed in lists for row in listed.rows]
        left = self.images.keys() - {_stem(filename) for filename, _ in rows}
        strange = {stem[:9] for stem in left} - {class_id for _, class_id in rows}
        return {"unlisted_images": len(left), "unlisted_classes": sorted(strange)} if left else {}


def deal_held_out(
    infos: Sequence[ClassInfo],
    lists: Mapping[str, FileList],
    found: Mapping[str, Sequence[RawImage]],
    *,
    held_out: Sequence[int],
    seed: int,
) -> tuple[list[Picture], dict[str, Any]]:
    """Pictures of all roles, `held_out` = [seen_val, seen_test] of each seen class, and what has to be said of them."""
    if len(held_out) != 2 or min(held_out) < 1:
        raise BadInput(f"held_out is {list(held_out)}, expected two positive numbers [seen_val, seen_test]")
    role_of = {raw: role for role, images in found.items() for raw in images}
    content = shared_contents(list(role_of))
    dropped, facts = _leaks(role_of, content)
    class_of = {
        raw: class_id
        for role, images in found.items()
        for raw, (_, class_id) in zip(images, lists[role].rows, strict=True)
    }
    kept = sorted((raw for raw in class_of if raw not in dropped), key=lambda raw: raw.source)
    seen: dict[str, list[RawImage]] = {info.name: [] for info in infos if info.split == "seen"}
    for raw in kept:
        if role_of[raw] == "train":
            seen[class_of[raw]].append(raw)
    out = hold_out(seen, content, sizes=(held_out[0], held_out[1]), seed=seed)
    facts |= {"extra": "held_out", "held_out": {"seen_val": held_out[0], "seen_test": held_out[1]}}
    return [Picture(raw, class_of[raw], out.get(raw, role_of[raw])) for raw in kept], facts


def _leaks(role_of: Mapping[RawImage, str], content: Mapping[RawImage, str]) -> tuple[set[RawImage], dict[str, Any]]:
    """Copies to leave out, and sentences about them and about the pictures that occur twice in one split."""
    copies: dict[str, list[RawImage]] = {}
    for raw, digest in content.items():
        copies.setdefault(digest, []).append(raw)
    dropped: set[RawImage] = set()
    leaks, repeats = [], []
    for group in copies.values():
        first, *others = sorted(group, key=lambda raw: (KEPT_FIRST.index(role_of[raw]), raw.source))
        for raw in others:
            if role_of[raw] == role_of[first]:
                repeats.append(f"{first.source} = {raw.source} ({role_of[raw]})")
            else:
                dropped.add(raw)
                leaks.append(f"{raw.source} ({role_of[raw]}) = {first.source} ({role_of[first]})")
    facts = {"copies_in_two_splits_dropped": sorted(leaks), "copies_in_one_split_kept": sorted(repeats)}
    return dropped, {name: sentences for name, sentences in facts.items() if sentences}


def _stem(name: str) -> str:
    return name.rpartition(".")[0].lower()
