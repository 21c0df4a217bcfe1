"""The embedded benchmark: real characters from bundled fonts, arranged like each of the paper's four datasets.

An analogue says which characters form which groups, and how its domains look; the seed decides which characters
become the classes of which split, and every image's font, pose, light, clutter and noise.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from repro.data.dataset import ROLES, SPLIT_OF_ROLE, SPLITS, ClassInfo, Header
from repro.data.seeding import generator
from repro.errors import BadInput
from repro.preparation.glyph_analogues import ANALOGUES, CLUTTER, Analogue, Domain
from repro.preparation.glyph_masks import class_name, covering_fonts, distinct, is_character, mask
from repro.preparation.glyph_rendering import Strengths, render, stroke_planes

MIN_FONTS = 2  # that draw a character in each of its domains
MASK_MARGIN = 10 / 7  # a mask has this many pixels per image pixel, so that posing it keeps detail
CLUTTER_FONT = "DejaVuSans"
MOST_PIXELS = 2**34  # all images are drawn in memory, a byte per pixel


@dataclass(frozen=True)
class GlyphClass:
    """A character chosen as a class: its split, the group it came from, and the domains in which it has images."""

    point: int
    split: str
    group: str
    domains: tuple[Domain, ...]


def render_glyphs(
    analogue: str,
    seed: int,
    *,
    classes: Mapping[str, int],
    images: Mapping[str, int],
    size: int,
    elastic: float,
    clutter: float,
    occlusion: float,
    noise: float,
    background: float,
) -> tuple[Header, np.ndarray, pd.DataFrame]:
    """Render one analogue, ready for `write_dataset`: header, images (N×size×size×1, uint8) and manifest.

    `classes` gives the number of classes per split (seen, val, test), `images` the images per class in each role; where
    a class has several domains they share its images evenly. The strengths are explained in `Strengths`.
    Equal arguments give equal bytes. Raises BadInput where the analogue is unknown or too few characters exist.
    """
    _check(analogue, classes, images, size)
    structure = ANALOGUES[analogue]
    strengths = Strengths(elastic, clutter, occlusion, noise, background)
    chosen = _choose_classes(structure, classes, generator(seed, "glyphs", analogue, "classes"))
    domain_index = {domain.name: index for index, domain in enumerate(structure.domains)}
    mask_side = round(MASK_MARGIN * size)
    clutter_CBB = _masks([(CLUTTER_FONT, point) for point in CLUTTER], mask_side).double() / 255

    batches = list(_batches(chosen, images))
    images_NHWC = np.empty((sum(batch.count for batch in batches), size, size, 1), dtype=np.uint8)
    rows: list[tuple[int, int, str, str, str]] = []
    for batch in batches:
        fonts = covering_fonts(batch.point, batch.domain.families)
        drawn_NHW, font_N = render(
            stroke_planes(_masks([(font, batch.point) for font in fonts], mask_side)),
            clutter_CBB,
            look=batch.domain.look,
            strengths=strengths,
            size=size,
            count=batch.count,
            generator=generator(seed, "glyphs", analogue, batch.point, batch.role, batch.domain.name),
        )
        images_NHWC[len(rows) : len(rows) + batch.count] = drawn_NHW.numpy()[..., None]
        for number, (image, font) in enumerate(zip(drawn_NHW.numpy(), font_N.tolist(), strict=True), batch.first):
            source = f"glyphs/U+{batch.point:04X}/{fonts[font]}/{number}"
            digest = hashlib.sha256(image.tobytes()).hexdigest()
            rows.append((batch.label, domain_index[batch.domain.name], batch.role, source, digest))

    header = Header(
        name=analogue,
        classes=tuple(ClassInfo(class_name(one.point), one.split, one.group) for one in chosen),
        domains=tuple(domain_index),
        domain_rule=structure.domain_rule,
        provenance={"source": "glyphs", "seed": seed, "size": size, "images": dict(images), **asdict(strengths)},
    )
    return header, images_NHWC, pd.DataFrame(rows, columns=["label", "domain", "role", "source", "sha256"])


@dataclass(frozen=True)
class Batch:
    """Images drawn together: one class, role and domain; `first` is the number of the first one within its class."""

    label: int
    point: int
    role: str
    domain: Domain
    first: int
    count: int


def _batches(chosen: list[GlyphClass], images: Mapping[str, int]) -> Iterator[Batch]:
    """List what to draw; memory stays bounded by one batch, whatever the size of the dataset."""
    for label, one in enumerate(chosen):
        first = 0
        for role in (role for role in ROLES if SPLIT_OF_ROLE[role] == one.split):
            for domain, count in zip(one.domains, _shares(images[role], len(one.domains)), strict=True):
                yield Batch(label, one.point, role, domain, first, count)
                first += count


def _choose_classes(structure: Analogue, classes: Mapping[str, int], random: torch.Generator) -> list[GlyphClass]:
    """Draw the classes of every split from its groups, in label order."""
    domains = {domain.name: domain for domain in structure.domains}
    pools = _candidates(structure)
    shuffled = {
        group.name: [pools[group.name][place] for place in torch.randperm(len(pools[group.name]), generator=random)]
        for group in structure.groups
    }
    chosen = []
    for split in SPLITS:
        groups = [group for group in structure.groups if split in group.splits]
        for group, count in zip(groups, _shares(classes[split], len(groups)), strict=True):
            pool = shuffled[group.name]
            if len(pool) < count:
                raise BadInput(
                    f"{split}: {count} more classes wanted from the characters of group {group.name!r}, "
                    f"{len(pool)} distinct ones are left; ask for fewer classes"
                )
            group_domains = tuple(domains[name] for name in group.domains)
            chosen += [GlyphClass(point, split, group.name, group_domains) for point in sorted(pool[:count])]
            shuffled[group.name] = pool[count:]
    return chosen


@cache
def _candidates(structure: Analogue) -> dict[str, list[int]]:
    """List per group the characters that its domains can draw and that look unlike all others of the dataset."""
    families = {domain.name: domain.families for domain in structure.domains}
    fonts_of_point: dict[int, tuple[str, ...]] = {}
    group_of_point: dict[int, str] = {}
    for group in structure.groups:
        for point in (point for first, last in group.ranges for point in range(first, last + 1)):
            fonts = [covering_fonts(point, families[name]) for name in group.domains]
            if is_character(point) and min(map(len, fonts)) >= MIN_FONTS:
                fonts_of_point[point] = tuple(font for covering in fonts for font in covering)
                group_of_point[point] = group.name
    pools: dict[str, list[int]] = {group.name: [] for group in structure.groups}
    for point in distinct(fonts_of_point):
        pools[group_of_point[point]].append(point)
    return pools


def _masks(glyphs: list[tuple[str, int]], side: int) -> Tensor:
    return torch.from_numpy(np.stack([mask(font, point, side) for font, point in glyphs]))


def _shares(total: int, parts: int) -> list[int]:
    """Split evenly; the first ones get what is left over."""
    return [total // parts + (part < total % parts) for part in range(parts)]


def _check(analogue: str, classes: Mapping[str, int], images: Mapping[str, int], size: int) -> None:
    if analogue not in ANALOGUES:
        raise BadInput(f"analogue {analogue!r} is unknown; expected one of {', '.join(ANALOGUES)}")
    for name, given, expected in (("classes", classes, SPLITS), ("images", images, ROLES)):
        if set(given) != set(expected) or min(given.values()) < 1:
            wanted = f"expected a count of at least 1 for each of {', '.join(expected)}"
            raise BadInput(f"{name} of {analogue} is {dict(given)}; {wanted}")
    pixels = size**2 * sum(classes[SPLIT_OF_ROLE[role]] * count for role, count in images.items())
    if pixels > MOST_PIXELS:
        message = f"{analogue} would have {pixels} pixels, expected at most {MOST_PIXELS}"
        raise BadInput(f"{message}; ask for fewer images or a smaller size")
