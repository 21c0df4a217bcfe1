"""Pools of images by class and domain, from which splits and roles are drawn with the seed.

Used wherever a dataset has no published file lists: Heterogeneous, Office-Home and any image folder.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from repro.data.dataset import ClassInfo, DomainRule
from repro.errors import BadInput
from repro.preparation.augmented_seen import shuffled, two_halves
from repro.preparation.collection import NO_DOMAIN, Collection, Picture, gather
from repro.preparation.images import RawImage, without_repeats
from repro.preparation.splits import SplitSizes, draw_classes

# Domain → class → its images, in an order that only the files decide.
Pools = Mapping[str, Mapping[str, Sequence[RawImage]]]


@dataclass(frozen=True)
class Draw:
    """How many images a class gives.

    `per_class` images become train, val or test (None: all that are left); `extra` more of a seen class form the
    augmented seen set, in two halves; where a class cannot give so many, `least_extra` suffice (None: `extra`). With
    images of a class in several domains these are numbers per domain.
    """

    extra: int
    per_class: int | None = None
    least_extra: int | None = None

    def needed(self) -> dict[str, int]:
        """What a class of each split must have at least."""
        least = self.extra if self.least_extra is None else min(self.extra, self.least_extra)
        base = self.base()
        if least < 2 or base < 1:
            raise BadInput(f"extra is {least} and per_class {base}, expected at least 2 and 1: an image for every role")
        return {"seen": base + least, "val": base, "test": base}

    def base(self) -> int:
        """Images of a class that are not extra, at least."""
        return 1 if self.per_class is None else self.per_class


def draw_dataset(
    name: str,
    pools: Pools,
    *,
    rule: DomainRule,
    sizes: SplitSizes,
    draw: Draw,
    seed: int,
    provenance: Mapping[str, Any],
) -> Collection:
    """Draw classes and images. With `per_class` domains, `sizes` holds for each domain; else for the whole set.

    Repeated contents are used once, so that no role shares an image with another. Raises BadInput.
    """
    unique, dropped = _without_repeats(pools)
    if rule == "per_class":
        groups = {domain: {domain: classes} for domain, classes in unique.items()}
    else:
        groups = {provenance["source"]: unique}  # not the dataset's name: what is drawn should not depend on it
    classes: list[ClassInfo] = []
    pictures: list[Picture] = []
    for group, pool in groups.items():
        split_of = _draw_group(group, pool, sizes, draw, seed)
        classes += [ClassInfo(class_name, split) for class_name, split in split_of.items()]
        for domain, members in pool.items():
            for class_name in sorted(split_of):
                pictures += _roles(members[class_name], class_name, split_of[class_name], domain, draw=draw, seed=seed)
    facts = {"seed": seed, "extra": "drawn", "repeated_images_dropped": dropped, **provenance}
    return gather(name, classes, pictures, domains=tuple(pools), domain_rule=rule, provenance=facts)


def domain_rule_of(pools: Pools, root: object) -> DomainRule:
    """Read the rule off the pools: one domain, a class in one domain each, or every class in every domain."""
    if len(pools) == 1:
        return "none" if NO_DOMAIN in pools else "per_class"
    homes = Counter(name for classes in pools.values() for name in classes)
    if set(homes.values()) == {len(pools)}:
        return "per_image"
    if set(homes.values()) == {1}:
        return "per_class"
    partial = min(name for name, domains in homes.items() if domains < len(pools))
    raise BadInput(
        f"{root}: class {partial} is in {homes[partial]} of {len(pools)} domains and others are in more, expected "
        "every class in all domains or each class in one; add or remove folders"
    )


def _draw_group(
    group: str, pool: Mapping[str, Mapping[str, Sequence[RawImage]]], sizes: SplitSizes, draw: Draw, seed: int
) -> dict[str, str]:
    """Draw the classes of one group: a class counts as large as it is in its poorest domain."""
    names = sorted({name for members in pool.values() for name in members})
    fewest = {name: min(len(members.get(name, ())) for members in pool.values()) for name in names}
    return draw_classes(fewest, sizes, draw.needed(), seed, group)


def _roles(
    images: Sequence[RawImage], class_name: str, split: str, domain: str, *, draw: Draw, seed: int
) -> Iterator[Picture]:
    """Deal one class's images of one domain to its roles."""
    dealt = shuffled(images, seed, domain, class_name)
    if split != "seen":
        yield from (Picture(raw, class_name, split, domain) for raw in dealt[: draw.per_class])
        return
    extra = min(draw.extra, len(dealt) - draw.base())
    halves = two_halves(dealt[:extra]).by_role()
    rest = dealt[extra:]
    for role, members in (halves | {"train": rest[: draw.per_class]}).items():
        yield from (Picture(raw, class_name, role, domain) for raw in members)


def _without_repeats(pools: Pools) -> tuple[dict[str, dict[str, list[RawImage]]], int]:
    """Use every content once, wherever it first occurs; also tell how many images were dropped."""
    everything = [raw for classes in pools.values() for images in classes.values() for raw in images]
    kept = set(without_repeats(everything))
    unique = {
        domain: {name: [raw for raw in images if raw in kept] for name, images in classes.items()}
        for domain, classes in pools.items()
    }
    return unique, len(everything) - len(kept)
