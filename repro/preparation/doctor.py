"""Is this raw dataset fit to be packed? Layout, counts, unreadable files, contents shared between roles, variant.

Every finding has a verdict: fail stops work, warn is worth knowing (published lists that repeat training images).
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from repro.data.dataset import ROLES, SPLIT_OF_ROLE, SPLITS
from repro.errors import BadInput
from repro.preparation.collection import Collection, Picture
from repro.preparation.images import available_cores, read_content, shared_contents, to_pixels
from repro.preparation.sources import collect

Verdict = Literal["pass", "warn", "fail"]
SHOWN = 3  # examples named in a finding
CHUNK = 1024  # images handed to the threads at a time
TASK_IMAGES = 20  # of an unseen class in a 5-shot task: 5 support and 15 query images


@dataclass(frozen=True)
class Finding:
    """One row of the doctor's table."""

    check: str
    seen: str
    expected: str
    verdict: Verdict


@dataclass(frozen=True)
class Report:
    """All findings, and the images per class and role where the layout could be read."""

    findings: list[Finding]
    counts: dict[str, dict[str, int]]

    @property
    def passed(self) -> bool:
        """True where nothing failed."""
        return all(finding.verdict != "fail" for finding in self.findings)


def examine(
    source: str,
    seed: int,
    options: Mapping[str, Any],
    *,
    decode: bool = True,
    task_images: int = TASK_IMAGES,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Examine a raw dataset as `collect` would list it; `decode` reads and decodes every image.

    `task_images` is what an unseen class must have for one task. `progress` hears (images done, images in all).
    """
    try:
        collection = collect(source, source, seed, options)
    except BadInput as error:
        return Report([Finding("layout", str(error), "the layout and the counts of this source", "fail")], {})
    findings = [Finding("layout", f"{len(collection.pictures):,} images listed", "readable folders and lists", "pass")]
    findings += _classes(collection)
    counts = _counts(collection)
    findings += _roles(collection, counts, task_images)
    contents, unreadable = _read_all(collection, progress) if decode else (_shared(collection), None)
    findings += _readability(unreadable)
    findings += _shared_between_roles(collection, contents)
    findings += _variant(collection.header.provenance)
    return Report(findings, counts)


def _classes(collection: Collection) -> Iterator[Finding]:
    found = Counter(info.split for info in collection.header.classes)
    seen = ", ".join(f"{found[split]} {split}" for split in SPLITS)
    yield Finding("classes", seen, "no class in two splits", "pass")  # else collect would have raised
    if collection.header.domain_rule != "none":
        yield Finding("domains", ", ".join(collection.header.domains), "at least one", "pass")


def _counts(collection: Collection) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {info.name: {} for info in collection.header.classes}
    for (class_name, role), number in Counter((each.class_name, each.role) for each in collection.pictures).items():
        counts[class_name][role] = number
    return counts


def _roles(collection: Collection, counts: dict[str, dict[str, int]], task_images: int) -> Iterator[Finding]:
    """One row per role: images in all, and the fewest and most of a class."""
    for role in ROLES:
        split = SPLIT_OF_ROLE[role]
        held = {info.name: counts[info.name].get(role, 0) for info in collection.header.classes if info.split == split}
        least = 1 if split == "seen" else task_images
        poorest = min(held, key=lambda name: held[name])
        spread = f"{min(held.values()):,}" + (f" to {max(held.values()):,}" if len(set(held.values())) > 1 else "")
        enough = held[poorest] >= least
        seen = f"{sum(held.values()):,} images, {spread} per class" + ("" if enough else f" (fewest: {poorest})")
        yield Finding(f"role {role}", seen, f"at least {least} per class", "pass" if enough else "fail")


def _read_all(collection: Collection, progress: Callable[[int, int], None]) -> tuple[dict[int, str], list[str]]:
    """Read and decode everything: place → content hash, and a sentence per image that cannot be decoded."""
    contents: dict[int, str] = {}
    unreadable: list[str] = []
    pictures = collection.pictures
    with ThreadPoolExecutor(available_cores()) as pool:
        for start in range(0, len(pictures), CHUNK):
            chunk = pictures[start : start + CHUNK]
            for place, (digest, problem) in enumerate(pool.map(_read_one, chunk), start):
                if digest:
                    contents[place] = digest
                if problem:
                    unreadable.append(problem)
            progress(start + len(chunk), len(pictures))
    return contents, unreadable


def _read_one(picture: Picture) -> tuple[str | None, str | None]:
    try:
        content = read_content(picture.raw)
    except BadInput as error:
        return None, str(error)
    try:
        to_pixels(picture.raw, content, size=8)
    except BadInput as error:
        return (hashlib.sha256(content).hexdigest() if content else None), str(error)
    return hashlib.sha256(content).hexdigest(), None


def _shared(collection: Collection) -> dict[int, str]:
    """Content hashes of the images that share their content, without reading the others whole."""
    shared = shared_contents([picture.raw for picture in collection.pictures])
    return {place: shared[each.raw] for place, each in enumerate(collection.pictures) if each.raw in shared}


def _readability(unreadable: list[str] | None) -> Iterator[Finding]:
    expected = "every image decodes"
    if unreadable is None:
        yield Finding("files", "not decoded (fast)", expected, "warn")
    elif unreadable:
        examples = " | ".join(unreadable[:SHOWN])
        yield Finding("files", f"{len(unreadable):,} bad: {examples}", expected, "fail")
    else:
        yield Finding("files", "all decode", expected, "pass")


def _shared_between_roles(collection: Collection, contents: dict[int, str]) -> Iterator[Finding]:
    """A row per pair of roles that share contents; one row that says so where none do."""
    places: dict[str, dict[str, int]] = defaultdict(dict)
    for place, digest in contents.items():
        places[collection.pictures[place].role].setdefault(digest, place)
    is_published = collection.header.provenance.get("extra") == "published"
    clean = True
    for one, other in combinations(ROLES, 2):
        shared = sorted(places[one].keys() & places[other].keys())
        if not shared:
            continue
        clean = False
        first = collection.pictures[places[other][shared[0]]].raw
        # Published lists are used as they are; a repeat inside what we draw would be our fault.
        given = is_published or SPLIT_OF_ROLE[one] != SPLIT_OF_ROLE[other]
        yield Finding(
            f"{one} and {other}",
            f"{len(shared):,} contents in both, such as {first}",
            "no content in two roles",
            "warn" if given else "fail",
        )
    if clean:
        yield Finding("duplicates", "none between roles", "no content in two roles", "pass")


def _variant(provenance: Mapping[str, Any]) -> Iterator[Finding]:
    """Which variant of the dataset this is, from what the source noted."""
    if "naming" in provenance:
        meaning = {"ilsvrc": "ILSVRC's names (n01532829_13061.JPEG)", "counter": "counters (n0153282900000005.jpg)"}
        yield Finding("naming of the lists", meaning[provenance["naming"]], "one of the two namings", "pass")
    meaning = {
        "drawn": "drawn with the seed, disjoint from training by content",
        "published": "as published",
        "clean": "as published, without training images",
    }
    yield Finding("extra seen images", meaning[provenance["extra"]], "drawn, published or clean", "pass")
    if provenance.get("extra_listed"):
        listed, repeated = provenance["extra_listed"], provenance["extra_among_training"]
        used = provenance["extra"] == "published" and repeated
        seen = f"{repeated:,} of {listed:,} ({repeated / listed:.0%}) are training images"
        yield Finding("published extra images", seen, "none among the training images", "warn" if used else "pass")
    if provenance.get("repeated_images_dropped"):
        seen = f"{provenance['repeated_images_dropped']:,} copies of other images are left out"
        yield Finding("repeated images", seen, "none", "warn")
