"""A few images of every class instead of all: listed and checked as a whole, decoded or drawn in part."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from repro.preparation.collection import Collection
from repro.preparation.glyph_analogues import ANALOGUES
from repro.preparation.packing import pack
from repro.preparation.preparing import RENDERERS, prepare
from repro.preparation.sources import collect

Keep = Mapping[str, int]  # images of a class, in each of its domains, by role


def prepare_sample(keep: Keep) -> Callable[..., None]:
    """`prepare` for this number of images."""

    def prepared(
        source: str,
        name: str,
        folder: Path,
        *,
        size: int,
        seed: int,
        options: Mapping[str, Any],
        workers: int | None,
        progress: Callable[[int, int], None],
    ) -> None:
        if source in RENDERERS:
            fewer = drawn_less(options, keep)
            RENDERERS[source](seed=seed, size=size, **drawn_less(options, dict.fromkeys(keep, 1)))
            progress(0, 1)  # classes are chosen and their masks are cut out, however many images follow
            prepare(source, name, folder, size=size, seed=seed, options=fewer, workers=workers, progress=progress)
            progress(1, 1)
        else:
            collection = collect(source, name, seed, options)
            progress(0, len(collection.pictures))  # listed
            pack(sampled(collection, keep), folder, size=size, workers=workers, progress=progress)

    return prepared


def sampled(collection: Collection, keep: Keep) -> Collection:
    """The first pictures of every class, role and domain."""
    taken: Counter[tuple[str, str, str]] = Counter()
    pictures = []
    for picture in collection.pictures:
        group = picture.class_name, picture.role, picture.domain
        taken[group] += 1
        if taken[group] <= keep[picture.role]:
            pictures.append(picture)
    return replace(collection, pictures=pictures)


def drawn_less(options: Mapping[str, Any], keep: Keep) -> dict[str, Any]:
    """Options of a source that draws its images, for fewer of them; domains share the images of a class."""
    structure = ANALOGUES[options["analogue"]]
    domains = len(structure.domains) if structure.domain_rule == "per_image" else 1
    images = {role: min(number, keep[role] * domains) for role, number in options["images"].items()}
    return {**options, "images": images}
