"""Tables in Markdown."""

from collections.abc import Sequence

NOTHING = "–"


def cell(text: str) -> str:
    """A text on one line, with what would end its cell or begin HTML escaped."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def row(cells: Sequence[str]) -> str:
    """One line of a table."""
    return "| " + " | ".join(map(cell, cells)) + " |"
