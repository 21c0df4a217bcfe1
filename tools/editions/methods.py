"""The names of all methods there are, for what is told of editions."""

from repro.methods.registry import method_class, method_names
from repro.report.facts import Methods


def known_methods() -> Methods:
    """Every method's card."""
    return Methods({name: method_class(name).own_card() for name in method_names()})
