"""Tables in Markdown."""

from collections.abc import Sequence

NOTHING = "–"


def row(cells: Sequence[str]) -> str:
    """One line of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
