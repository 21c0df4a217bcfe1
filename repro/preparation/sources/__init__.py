"""Raw data that users bring, one file per layout. A source lists pictures with class, role and domain; none decodes.

New source: one file with `collect(name, seed, *, ...)`, one line here.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError, validate_call

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


def collect(source: str, name: str, seed: int, options: Mapping[str, Any]) -> Collection:
    """List the dataset `name` from a raw source; `options` are the source's named arguments. Raises BadInput."""
    if source not in SOURCES:
        raise BadInput(f"source is {source!r}, expected one of {', '.join(SOURCES)}")
    allowed = options_of(source)
    unknown = sorted(set(options) - set(allowed))
    missing = sorted(
        key for key, default in allowed.items() if default is inspect.Parameter.empty and key not in options
    )
    if unknown or missing:
        seen = f"unknown option {unknown[0]}" if unknown else f"no option {missing[0]}"
        raise BadInput(f"source {source}: {seen}, expected {', '.join(allowed)}")
    try:
        return validate_call(SOURCES[source])(name, seed, **options)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadInput(f"source {source}: option {where} is {first['input']!r}: {first['msg']}") from error
    except OSError as error:
        raise BadInput(f"{error.filename}: cannot be read ({error.strerror}); check path and permissions") from error


def options_of(source: str) -> dict[str, Any]:
    """Named arguments of a source with their defaults (`inspect.Parameter.empty` where one must be given)."""
    parameters = inspect.signature(SOURCES[source]).parameters.values()
    return {each.name: each.default for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY}
