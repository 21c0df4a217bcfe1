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
    """A sentence for every trained cell whose AUSUC lies below the floor's on the same tasks, with the ways where."""
    for cell in cells:
        records = results.cell(cell)
        if cell.method not in trained or cell.variant or records is None:
            continue
        below = []
        for way in records.ways("gfsl"):
            own, least = (
                results.estimate(Reading(each, "gfsl", way, "ausuc")) for each in (cell, replace(cell, method=FLOOR))
            )
            if own and least and own.mean < least.mean:
                below.append(f"{rounded(own.mean)} below {rounded(least.mean)} at {way} ways")
        if below:
            where = f"{methods.label(cell.method)} on {cell.dataset}, {cell.shot}-shot"
            yield f"{where}: AUSUC under the untrained floor's, {', '.join(below)}"
