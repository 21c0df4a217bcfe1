"""YAML as DVC reads it (`1e-05` is a number, `010` is ten), plain values only."""

import math
import re
import stat
import warnings
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError, YAMLWarning

from repro.errors import BadInput, one_line

MOST_BYTES = 1 << 20
MOST_VALUES = 100_000  # an alias can make a small file huge
MOST_LEVELS = 50
LARGEST_FRACTION = 1e30  # a rate is multiplied yet, and float32 ends at 3e38
SMALLEST_FRACTION = 1e-30  # and at 1e-38
LARGEST = 2**64  # Python does not even write numbers of thousands of digits


def read_mapping(file: Path, expected: str) -> dict[str, Any]:
    """A YAML file of the user's whose outermost level is a mapping; raises BadInput."""
    text = read_text(file, expected)
    content = parse(text, str(file))
    if not isinstance(content, dict):
        raise BadInput(f"{file}: holds {type(content).__name__}, expected {expected}")
    return content


def read_text(file: Path, expected: str) -> str:
    """The text of a file of the user's; raises BadInput. A pipe or a device would be read for ever."""
    try:
        if not stat.S_ISREG(file.stat().st_mode) and not file.is_dir():
            raise BadInput(f"{file}: is a pipe or a device; expected {expected}")
        with file.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise BadInput(f"{file}: has {file.stat().st_size} bytes, expected at most {MOST_BYTES}")
        return content.decode("utf-8")
    except OSError as error:
        raise BadInput(f"{file}: cannot be read ({error.strerror}); expected {expected}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file}: is no text ({error}); expected {expected}") from error


def parse(text: str, place: str) -> Any:
    """The value that a text stands for; raises BadInput, which begins with `place`, for anything that is not plain."""
    if re.search("^\ufeff?%YAML", text, re.MULTILINE):  # DVC reads on as if it were not there
        raise BadInput(f"{place}: has a line %YAML, expected plain YAML of version 1.2; remove that line")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of an anchor that means two things, say
            value = YAML(typ="safe", pure=True).load(text)  # libyaml dies of deep nesting, Python says so
    except (
        YAMLError,
        YAMLWarning,
        RecursionError,
        LookupError,
        ValueError,
        TypeError,
    ) as error:  # `!!bool x` is no key
        raise BadInput(f"{place}: not plain YAML ({one_line(error):.300}); correct that line") from error
    _require_plain(value, place)
    return value


def _require_plain(value: Any, place: str) -> None:
    """Raise BadInput unless there are only texts, numbers, truth values, lists and mappings, and not too many."""
    left = MOST_VALUES
    waiting = [(value, "", 0)]
    while waiting:
        one, path, level = waiting.pop()
        left -= 1
        if left < 0 or level > MOST_LEVELS:
            raise BadInput(f"{place}: has more values or levels than any settings, expected plain YAML; write it out")
        if isinstance(one, dict):
            for key, inner in one.items():
                if not isinstance(key, str):
                    raise BadInput(
                        f"{place}: {path or 'it'} has the key {key!r:.60}, expected a name; put it in quotes"
                    )
                waiting.append((inner, f"{path}.{key}".lstrip("."), level + 1))
        elif isinstance(one, list):
            waiting += [(inner, f"{path}.{number}", level + 1) for number, inner in enumerate(one)]
        elif isinstance(one, str):
            if not one.replace("\n", "").replace("\t", "").isprintable():
                raise BadInput(f"{place}: {path} is {one!r:.60}, expected text that can be printed")
        elif isinstance(one, int) and abs(one) > LARGEST:
            raise BadInput(f"{place}: {path} is a number of {one.bit_length()} bits, expected one of at most 64")
        elif isinstance(one, float) and math.isfinite(one) and abs(one) > LARGEST_FRACTION:
            message = f"{place}: {path} is {one}, expected at most {LARGEST_FRACTION:.0e}"
            raise BadInput(f"{message}: single precision ends soon after")
        elif isinstance(one, float) and 0 < abs(one) < SMALLEST_FRACTION:
            message = f"{place}: {path} is {one}, expected 0 or at least {SMALLEST_FRACTION:.0e}"
            raise BadInput(f"{message}: single precision takes less for 0")
        elif one is not None and not isinstance(one, bool | int | float):
            raise BadInput(f"{place}: {path} is {type(one).__name__} {one!s:.60}, expected text; put it in quotes")
