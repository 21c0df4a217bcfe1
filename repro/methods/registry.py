"""Every method by the name that params.yaml uses: one line each.

A name is also the file of the method, loaded when it is asked for: a stage reaches its own method's code, no other's.
"""

from importlib import import_module

from repro.errors import BadInput
from repro.methods.base import Method

METHODS = {
    "castle": "Castle",
    "acastle": "ACastle",
    "castle_minus": "CastleMinus",
    "mc_knn": "MulticlassKNN",
    "protonet": "ProtoNet",
    "mc_protonet": "MulticlassProtoNet",
    "l2ml": "L2ML",
    "dfsl": "DFSL",
    "ifsl": "AttentionAttractor",
    "lwf": "LwF",
    "icarl": "ICaRL",
    "castle_adapted": "CastleAdapted",
    "acastle_adapted": "ACastleAdapted",
    "upper_bound": "UpperBound",
}


def method_class(name: str) -> type[Method]:
    """The class behind a name; raises BadInput for a name that is not registered."""
    if name not in METHODS:
        raise BadInput(f"method {name!r} is unknown; expected one of {', '.join(METHODS)}")
    found: type[Method] = getattr(import_module(f"repro.methods.{name}"), METHODS[name])
    return found
