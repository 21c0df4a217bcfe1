"""How a method presents itself to readers: written in the method's own file, shown by tables, figures and report."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """How figures draw a method: colour (hexadecimal), marker and line style, the last two as Matplotlib spells them.

    Marker and line tell methods apart without colour.
    """

    color: str
    marker: str
    line: str


@dataclass(frozen=True)
class MethodCard:
    """The name to print, the work to cite with its address, and the looks; whatever is left out is chosen for it."""

    label: str = ""
    citation: str = ""
    url: str = ""
    look: Look | None = None
