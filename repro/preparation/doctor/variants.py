"""Which variant of a dataset this is, from what its source noted, and which contents its roles share."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from repro.data.dataset import ROLES, SPLIT_OF_ROLE
from repro.preparation.collection import Collection
from repro.preparation.doctor.findings import Finding

NAMINGS = {"ilsvrc": "ILSVRC's names (n01532829_13061.JPEG)", "counter": "counters (n0153282900000005.jpg)"}
EXTRAS = {
    "drawn": "drawn with the seed, disjoint from training by content",
    "published": "as published",
    "clean": "as published, without training images",
}


def shared_between_roles(collection: Collection, contents: dict[int, str]) -> Iterator[Finding]:
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


def variant(provenance: Mapping[str, Any]) -> Iterator[Finding]:
    """A row per fact that tells variants apart."""
    if provenance["source"] == "miniimagenet":
        copy = "root" in provenance
        seen = "the passed-around copy: its own images, no ILSVRC-12" if copy else "ILSVRC-12's images by the lists"
        yield Finding("variant", f"Ravi and Larochelle's split, {seen}", "either", "pass")
    if "naming" in provenance:
        yield Finding("naming of the lists", NAMINGS[provenance["naming"]], "one of the two namings", "pass")
    yield from _extra(provenance)
    yield from _repeats(provenance)
    if provenance.get("unlisted_images"):
        strange = provenance["unlisted_classes"]
        classes = f" (among them class {strange[0]}, which no list has)" if strange else ""
        seen = f"not used, because in no list: {provenance['unlisted_images']:,}{classes}"
        yield Finding("unlisted images", seen, "none", "warn")
    if "birds" in provenance:
        yield Finding("birds (CUB)", provenance["birds"], "a fact to report: cropped birds are easier", "pass")


def _extra(provenance: Mapping[str, Any]) -> Iterator[Finding]:
    seen = EXTRAS.get(
        provenance["extra"]
    ) or "{seen_val} + {seen_test} of each seen class, held out of training".format(**provenance["held_out"])
    yield Finding("extra seen images", seen, "drawn, published, clean or held out", "pass")
    if provenance.get("extra_listed"):
        listed, repeated = provenance["extra_listed"], provenance["extra_among_training"]
        used = provenance["extra"] == "published" and repeated
        seen = f"{repeated:,} of {listed:,} ({repeated / listed:.0%}) are training images"
        yield Finding("published extra images", seen, "none among the training images", "warn" if used else "pass")


def _repeats(provenance: Mapping[str, Any]) -> Iterator[Finding]:
    if provenance.get("repeated_images_dropped"):
        seen = f"{provenance['repeated_images_dropped']:,} copies of other images are left out"
        yield Finding("repeated images", seen, "none", "warn")
    if leaks := provenance.get("copies_in_two_splits_dropped"):
        why = "the first of each is left out, so that nothing measured was trained on"
        yield Finding("copies across splits", f"pairs: {len(leaks)}; {why}: {' | '.join(leaks)}", "none", "warn")
    if repeats := provenance.get("copies_in_one_split_kept"):
        why = "both pictures stay, and neither is held out"
        yield Finding("copies within a split", f"pairs: {len(repeats)}; {why}: {' | '.join(repeats)}", "none", "warn")
