"""Rows of methods that the paper lacks: which tables and figures they stand in."""

from collections.abc import Callable, Sequence

from repro.report.figure_layout import FIGURES, Figure
from repro.report.layout import TABLES, Table
from repro.results.store import Cell


def with_rows(
    methods: Sequence[str], evaluated: Callable[[Cell], bool] = lambda _: False
) -> tuple[tuple[Table, ...], tuple[Figure, ...]]:
    """Every table and figure, those that take rows with these methods in them.

    A method stands where its dataset has an evaluated cell of it, and everywhere, as dashes, while it has none at all.
    """
    everything: list[Table | Figure] = [*TABLES, *FIGURES]
    takers = [each for each in everything if each.takes_rows]
    datasets = {
        method: {each.dataset for each in takers if any(map(evaluated, each.cells_of(method)))} for method in methods
    }

    def chosen(dataset: str) -> list[str]:
        return [method for method in methods if dataset in datasets[method] or not datasets[method]]

    return (
        tuple(table.with_rows(chosen(table.dataset)) for table in TABLES),
        tuple(figure.with_rows(chosen(figure.dataset)) for figure in FIGURES),
    )


def lacked(method: str) -> bool:
    """Whether a table or figure that takes rows does not have this method already."""
    return with_rows([method]) != (TABLES, FIGURES)
