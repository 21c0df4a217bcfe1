"""Raw data that users bring, one file per layout. A source lists pictures with class, role and domain; none decodes.

New source: one file with `collect(name, seed, *, ...)`, whose docstring has a line `option: meaning` for each of its
options, and one line here.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from repro import options as named
from repro.errors import BadInput
from repro.preparation.collection import Collection
from repro.preparation.decoding import Crop
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
    """List the dataset `name` from a raw source; `options` are named arguments of the source and of `_every_source`.

    Raises BadInput.
    """
    if source not in SOURCES:
        raise BadInput(f"source is {source!r}, expected one of {', '.join(SOURCES)}")
    check_source_options(source, options)
    shared = {key: value for key, value in options.items() if key in named.options_of(_every_source, given=GIVEN)}
    own = {key: value for key, value in options.items() if key not in shared}
    try:
        return replace(SOURCES[source](name, seed, **own), **_every_source(**shared))
    except OSError as error:
        raise BadInput(f"{error.filename}: cannot be read ({error.strerror}); check path and permissions") from error


def check_source_options(source: str, options: Mapping[str, Any]) -> None:
    """Raise BadInput for options that a source does not have."""
    named.check_options(f"source {source}", options, SOURCES[source], _every_source, given=GIVEN)


def _every_source(*, crop: Crop = "squashed") -> dict[str, Any]:
    """What every source takes besides its own options.

    crop: squashed stretches the whole picture to the dataset's size; center224 resizes its short side to 256 and cuts
        out the central 224 pixels first, as the released code does at test; small squares stay whole
    """
    return {"crop": crop}


@dataclass(frozen=True)
class Option:
    """A named argument of a source; its default is `inspect.Parameter.empty` where one must be given."""

    default: Any
    annotation: Any
    meaning: str


def options_of(source: str) -> dict[str, Option]:
    """All options of a source by name, explained in the words of its docstring."""
    takers = (SOURCES[source], _every_source)
    meanings = {key: text for taker in takers for key, text in _meanings(taker).items()}
    return {
        key: Option(each.default, each.annotation, meanings.get(key, ""))
        for key, each in named.options_of(*takers, given=GIVEN).items()
    }


def _meanings(taker: Callable[..., Any]) -> dict[str, str]:
    """Option → explanation, from lines `option: explanation` of a docstring; indented lines continue one."""
    meanings: dict[str, str] = {}
    for line in (inspect.getdoc(taker) or "").splitlines():
        key, colon, text = line.partition(": ")
        if line.startswith("    ") and meanings:
            meanings[next(reversed(meanings))] += f" {line.strip()}"
        elif colon and key.isidentifier():
            meanings[key] = text.strip()
    return meanings
