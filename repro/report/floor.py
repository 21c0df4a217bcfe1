"""The floor: cosine nearest class mean, untrained. A training that ends below it was not worth its steps."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from repro.report.facts import Methods
from repro.report.tables import rounded
from repro.results.store import Cell, Reading, Results

FLOOR = "nearest_mean"


def floor_warnings(
    results: Results, cells: Iterable[Cell], trained: Collection[str], methods: Methods
) -> Iterator[str]:
    """A sentence for every trained method whose AUSUC lies below the floor's on the same tasks."""
    for cell in cells:
        records = results.cell(cell)
        if cell.method not in trained or cell.variant or records is None:
            continue
        for way in records.ways("gfsl"):
            own, least = (
                results.estimate(Reading(each, "gfsl", way, "ausuc")) for each in (cell, replace(cell, method=FLOOR))
            )
            if own and least and own.mean < least.mean:
                where = f"{methods.label(cell.method)} on {cell.dataset}, {cell.shot}-shot, {way} ways"
                yield f"{where}: AUSUC {rounded(own.mean)} lies below the untrained floor's {rounded(least.mean)}"
