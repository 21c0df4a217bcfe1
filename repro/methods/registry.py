"""Every method by its file's name, which is what params.yaml calls it: a new file is a new method.

A method is loaded when it is asked for: a stage reaches its own method's code, no other's.
"""

from importlib import import_module
from pathlib import Path

from repro.errors import BadInput
from repro.methods.base import Method

NO_METHODS = ("__init__", "base", "registry")


def method_names() -> list[str]:
    """The names of all methods."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return [file.stem for file in files if file.stem not in NO_METHODS]


def method_class(name: str) -> type[Method]:
    """The one subclass of Method that the file of this name defines; raises BadInput where there is none."""
    if name not in method_names():
        raise BadInput(f"method is {name!r}, expected one of {', '.join(method_names())}, or a file of that name")
    module = import_module(f"repro.methods.{name}")
    defined = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    methods = [each for each in defined if issubclass(each, Method)]
    if len(methods) != 1:
        found = ", ".join(each.__name__ for each in methods) or "none"
        raise BadInput(f"repro/methods/{name}.py defines {found} as subclasses of Method, expected exactly one")
    return methods[0]
