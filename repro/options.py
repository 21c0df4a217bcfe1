"""Options that a user gives by name, checked against what takes them before it is called."""

import inspect
import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pydantic import ConfigDict, ValidationError, create_model

from repro.errors import BadInput


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
        problems = {str(each["loc"][0]): _sentence(each) for each in reversed(error.errors())}
        message = f"{place}: {'; '.join(reversed(problems.values()))}"
        raise BadInput(f"{message}, expected {', '.join(allowed) or 'no options'}") from error


def _sentence(problem: Any) -> str:
    place = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"unknown option {place}"
    if problem["type"] == "missing":
        return f"no option {place}"
    return f"option {place} is {problem['input']!r:.60} ({problem['msg'][0].lower()}{problem['msg'][1:]})"
