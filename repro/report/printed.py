"""What the paper prints for a reading, and so for a comparison of readings."""

from collections.abc import Mapping, Sequence

from repro.report.layout import TABLES, Table
from repro.results.contrasts import Comparison
from repro.results.published import PublishedTable
from repro.results.store import Cell, Reading

TEXT = "text"  # the key of the numbers that stand in the paper's running text


class Printed:
    """The paper's numbers by the reading that they are of."""

    def __init__(self, published: Mapping[str, PublishedTable], tables: Sequence[Table] = TABLES) -> None:
        self._numbers: dict[Reading, dict[str, float]] = {}
        for table in tables:
            for row in table.rows:
                for column in table.columns:
                    number = published[table.key].number(row.key, column.key) if table.key in published else None
                    if number and (reading := table.reading(row, column)):
                        self._numbers.setdefault(reading, {})[table.key] = number.value
        for method, text in published[TEXT].rows.items() if TEXT in published else ():
            for measure, number in text.numbers.items():
                reading = Reading(Cell("mini", method, 1), "gfsl", 5, measure)
                self._numbers.setdefault(reading, {})[TEXT] = number.value

    def value(self, reading: Reading, shown_in: Sequence[str] = ()) -> float | None:
        """The printed number, of these tables first: some are printed differently in two places."""
        numbers = self._numbers.get(reading, {})
        return next((numbers[key] for key in (*shown_in, *numbers) if key in numbers), None)

    def effect(self, comparison: Comparison, shown_in: Sequence[str]) -> float | None:
        """The comparison's weighted sum of printed numbers; None where the paper prints not all of them."""
        values = [self.value(term.reading, shown_in) for term in comparison.terms]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        return sum(term.weight * value for term, value in zip(comparison.terms, known, strict=True))
