"""Raw data that users bring, one file per layout. A source lists pictures with class, role and domain; none decodes.

New source: one file with `collect(name, seed, *, ...)`, one line here.
"""

from collections.abc import Callable, Mapping
from typing import Any

from repro import options as named
from repro.errors import BadInput
from repro.preparation.collection import Collection
from repro.preparation.sources import (
    heterogeneous,
    image_folder,
    miniimagenet,
    office_home,
    tieredimagenet,
    tieredimagenet_packed,
)

SOURCES: dict[str, Callable[..., Collection]] = {
    "miniimagenet": miniimagenet.collect,
    "tieredimagenet": tieredimagenet.collect,
    "tieredimagenet_packed": tieredimagenet_packed.collect,
    "heterogeneous": heterogeneous.collect,
    "office_home": office_home.collect,
    "image_folder": image_folder.collect,
}
GIVEN = ("name", "seed")  # what a source is told besides its options


def collect(source: str, name: str, seed: int, options: Mapping[str, Any]) -> Collection:
    """List the dataset `name` from a raw source; `options` are the source's named arguments. Raises BadInput."""
    if source not in SOURCES:
        raise BadInput(f"source is {source!r}, expected one of {', '.join(SOURCES)}")
    named.check_options(f"source {source}", options, SOURCES[source], given=GIVEN)
    try:
        return SOURCES[source](name, seed, **options)
    except OSError as error:
        raise BadInput(f"{error.filename}: cannot be read ({error.strerror}); check path and permissions") from error


def options_of(source: str) -> dict[str, Any]:
    """Named arguments of a source with their defaults (`inspect.Parameter.empty` where one must be given)."""
    return {name: each.default for name, each in named.options_of(SOURCES[source], given=GIVEN).items()}
