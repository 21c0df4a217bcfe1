"""A method's file that is not whole is refused by name, before data is made for it."""

import sys
from types import ModuleType

import pytest

from repro.errors import BadInput
from repro.methods import registry
from repro.methods.base import Method

WHOLE = {"joint_logits": None, "unseen_logits": None}
LEARNS = {"batch_spec": None, "loss": None, "parameter_groups": None}
TRAINED = {**WHOLE, **LEARNS, "default_training": {}}


def found(monkeypatch: pytest.MonkeyPatch, *classes: dict[str, object]) -> type[Method]:
    """The method of a file `half` whose classes have these attributes."""
    module = ModuleType("repro.methods.half")
    for number, attributes in enumerate(classes):
        name = f"Half{number}"
        setattr(module, name, type(name, (Method,), {"__module__": module.__name__, **attributes}))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(registry, "method_names", lambda: ["half"])
    return registry.method_class("half")


@pytest.mark.parametrize("attributes", [WHOLE, TRAINED])
def test_a_whole_one_is_found(monkeypatch: pytest.MonkeyPatch, attributes: dict[str, object]) -> None:
    assert found(monkeypatch, attributes).__name__ == "Half0"


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([], "half.py defines none as subclasses of Method, expected exactly one"),
        ([WHOLE, WHOLE], "half.py defines Half0, Half1 as subclasses of Method, expected exactly one"),
        ([{"joint_logits": None}], "half.py: Half0 does not define unseen_logits; every method has to"),
        ([WHOLE | LEARNS], "Half0 defines batch_spec, loss, parameter_groups but no default_training"),
        ([WHOLE | {"default_training": {}, "loss": None}], "does not define batch_spec, parameter_groups; a training"),
    ],
)
def test_an_unfinished_one_is_refused(
    monkeypatch: pytest.MonkeyPatch, classes: list[dict[str, object]], expected: str
) -> None:
    with pytest.raises(BadInput) as refused:
        found(monkeypatch, *classes)
    assert expected in str(refused.value)
