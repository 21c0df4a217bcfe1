"""Values that a user gives by name, checked against the types of what takes them before it is called."""

import inspect
import json
import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, TypeVar, cast

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic_core import PydanticCustomError

from repro.errors import BadInput

Kind = TypeVar("Kind")
Positive = Annotated[float, Field(gt=0)]
# For dataclasses that are read from a file: no unknown keys, no silent conversions, no NaN.
STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def in_form(pattern: str, words: str) -> AfterValidator:
    """For texts that the whole pattern fits; where it does not, the message has `words` instead of the pattern."""

    def require(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise PydanticCustomError("form", words)
        return text

    return AfterValidator(require)


def checked(kind: type[Kind], content: Any, place: str) -> Kind:
    """Plain values, as YAML gives them, as a dataclass; raises BadInput with everything that is wrong with them.

    `place` begins the message. A list will do for a tuple; text is no number.
    """
    try:
        found: Kind = _adapter(cast(Hashable, kind)).validate_json(json.dumps(content))
        return found
    except ValidationError as error:
        raise BadInput(f"{place}: {'; '.join(map(sentence, _own(error.errors())))}") from error


def _own(problems: Sequence[Any]) -> Iterator[Any]:
    """The findings without those that only follow: pydantic does not count what is wrong in a list."""
    for problem in problems:
        if problem["type"] != "too_short" or len(problem["input"]) < problem["ctx"]["min_length"]:
            yield problem


@cache
def _adapter(kind: Hashable) -> TypeAdapter[Any]:
    return TypeAdapter(cast(Any, kind))


def options_of(*takers: Callable[..., Any], given: Collection[str]) -> dict[str, inspect.Parameter]:
    """The named arguments that `takers` share out among themselves, besides those that the code itself gives."""
    parameters = [each for taker in takers for each in inspect.signature(taker).parameters.values()]
    return {each.name: each for each in parameters if each.kind is not each.VAR_KEYWORD and each.name not in given}


def check_options(
    place: str, options: Mapping[str, Any], *takers: Callable[..., Any], given: Collection[str] = ()
) -> None:
    """Raise BadInput that names every option that is unknown, missing, or of another type than `takers` say.

    `place` begins the message; `given` are the arguments that are no options. Values are read as YAML gives them: a
    list will do for a tuple and text for a path, but text is no number, and neither is NaN.
    """
    allowed = options_of(*takers, given=given)
    fields: dict[str, Any] = {
        name: (each.annotation, ... if each.default is inspect.Parameter.empty else each.default)
        for name, each in allowed.items()
    }
    config = ConfigDict(extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True, protected_namespaces=())
    try:
        create_model("Options", __config__=config, **fields).model_validate_json(
            json.dumps(options, default=str), strict=True
        )
    except ValidationError as error:
        problems = {str(each["loc"][0]): sentence(each, "option") for each in reversed(error.errors())}
        message = f"{place}: {'; '.join(reversed(problems.values()))}"
        raise BadInput(f"{message}; it takes {', '.join(allowed) or 'no options'}") from error


def sentence(problem: Any, kind: str = "key") -> str:
    """One of pydantic's findings in words: where, what was seen, what was expected; `kind` is what a name names."""
    place = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "value_error":
        return f"{place}: {problem['ctx']['error']}" if place else str(problem["ctx"]["error"])
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"unknown {kind} {place}; remove it or correct its spelling"
    if problem["type"] == "missing":
        return f"{place} is missing"
    seen, message = repr(problem["input"]), str(problem["msg"])
    seen = seen if len(seen) < 60 else f"{seen[:57]}..."
    return f"{place} is {seen}, expected: {message[0].lower()}{message[1:]}"
