"""Every method by its file's name, which is what params.yaml calls it: a new file is a new method.

A method is loaded when it is asked for: a stage reaches its own method's code, no other's.
"""

from importlib import import_module
from pathlib import Path

from repro.errors import BadInput
from repro.methods.base import Method

NO_METHODS = ("__init__", "base", "registry")
LEARNS = ("batch_spec", "loss", "parameter_groups")  # what a method with a training defines


def method_names() -> list[str]:
    """The names of all methods."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return [file.stem for file in files if file.stem not in NO_METHODS]


def method_class(name: str) -> type[Method]:
    """The one subclass of Method that the file of this name defines; raises BadInput where it is not whole."""
    if name not in method_names():
        message = f"method is {name!r}, expected one of {', '.join(method_names())}"
        raise BadInput(f"{message}; a new one is a file repro/methods/NAME.py")
    module = import_module(f"repro.methods.{name}")
    defined = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    methods = [each for each in defined if issubclass(each, Method)]
    if len(methods) != 1:
        found = ", ".join(each.__name__ for each in methods) or "none"
        raise BadInput(f"repro/methods/{name}.py defines {found} as subclasses of Method, expected exactly one")
    _require_whole(methods[0], f"repro/methods/{name}.py: {methods[0].__name__}")
    return methods[0]


def _require_whole(method: type[Method], place: str) -> None:
    """Raise BadInput for a class that could not be used, before data is made for it."""
    if lacking := sorted(method.__abstractmethods__):
        raise BadInput(f"{place} does not define {', '.join(lacking)}; every method has to (repro/methods/base.py)")
    defined = [name for name in LEARNS if getattr(method, name) is not getattr(Method, name)]
    if method.default_training is None and defined:
        message = f"{place} defines {', '.join(defined)} but no default_training, so it would not be trained"
        raise BadInput(f"{message}; add one, {{}} to train as params.yaml says")
    if method.default_training is not None and len(defined) < len(LEARNS):
        lacking = [name for name in LEARNS if name not in defined]
        raise BadInput(
            f"{place} has a default_training but does not define {', '.join(lacking)}; a training needs them"
        )
