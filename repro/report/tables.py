"""The paper's tables as they are printed: rounding, the best in bold, dashes where nothing was measured.

Digits are chosen here and nowhere else; templates only place them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

from repro.report.facts import Benchmark, DatasetFacts, Methods, fill
from repro.report.layout import Column, Row, Table
from repro.report.variants import varied
from repro.results.intervals import Mean
from repro.results.published import PublishedNumber, PublishedTable
from repro.results.store import Reading, Results, Way

DASH = "–"
DECIMALS = 2
PAPER_TASKS = 10_000  # per measured number of the paper


@dataclass(frozen=True)
class Shown:
    """A number as printed; `interval` is empty where there is none."""

    mean: str
    interval: str = ""
    best: bool = False


@dataclass(frozen=True)
class Place:
    """One place of a table: our number, the published one, ours minus published; None or a dash where absent."""

    key: str
    ours: Shown | None
    published: Shown | None
    difference: str
    reading: Reading | None
    estimate: Mean | None


@dataclass(frozen=True)
class RowView:
    """One printed row. `quoted`: there is no number of ours to expect, only a cited one; `ours`: the paper lacks it."""

    label: str
    cited: bool
    quoted: bool
    ours: bool
    ruled: bool
    backbone: str
    published_backbone: str
    places: tuple[Place, ...]


@dataclass(frozen=True)
class HeaderCell:
    """A header above some neighbouring columns of numbers, counted from 1."""

    label: str
    first: int
    last: int

    @property
    def span(self) -> int:
        """How many columns it stands above."""
        return self.last - self.first + 1


@dataclass(frozen=True)
class TableView:
    """A table ready to be printed."""

    key: str
    title: str
    corner: tuple[str, ...]
    headers: tuple[tuple[HeaderCell, ...], ...]
    rows: tuple[RowView, ...]
    notes: tuple[str, ...]
    backbones: bool

    @property
    def columns(self) -> int:
        """How many columns of numbers it has."""
        return len(self.rows[0].places)

    def marks_cited(self, form: str) -> bool:
        """Whether this form of the table shows numbers that are quoted from other papers."""
        return any(row.quoted or (row.cited and form == "beside") for row in self.rows)

    @property
    def marks_ours(self) -> bool:
        """Whether a row is marked as one that the paper lacks."""
        return any(row.ours for row in self.rows)


def rounded(value: float) -> str:
    """A number as printed, with a proper minus sign and no negative zero."""
    text = f"{value:.{DECIMALS}f}"
    return f"−{text[1:]}" if text.startswith("-") and float(text) != 0 else text.removeprefix("-")


def signed(value: float) -> str:
    """A difference as printed: always with a sign, except zero."""
    text = rounded(value)
    return text if float(text.replace("−", "-")) <= 0 else f"+{text}"


def difference(ours: float, published: float) -> str:
    """Ours minus published, of the numbers as printed, so that a reader can check it."""
    return signed(round(ours, DECIMALS) - round(published, DECIMALS))


def view_table(
    table: Table,
    results: Results,
    published: PublishedTable,
    datasets: Mapping[str, DatasetFacts],
    benchmark: Benchmark,
    methods: Methods,
) -> TableView:
    """Fill one table from records and published numbers; what neither has is a dash."""
    estimates = {
        (row.key, column.key): results.estimate(reading) if (reading := table.reading(row, column)) else None
        for row in table.rows
        for column in table.columns
    }
    printed = {
        (row.key, column.key): published.number(row.key, column.key) for row in table.rows for column in table.columns
    }
    best_ours = _best(table, {key: value.mean for key, value in estimates.items() if value})
    best_published = _best(table, {key: value.value for key, value in printed.items() if value})

    def place(row: Row, column: Column) -> Place:
        key = row.key, column.key
        ours, theirs = estimates[key], printed[key]
        return Place(
            f"{table.key}/{row.key}/{column.key}",
            Shown(rounded(ours.mean), rounded(ours.ci), key in best_ours) if ours else None,
            _shown(theirs, key in best_published),
            difference(ours.mean, theirs.value) if ours and theirs else DASH,
            table.reading(row, column),
            ours,
        )

    labels = {row.key: row.label or varied(methods.label(row.method or row.key), row.variant) for row in table.rows}
    rows = tuple(
        RowView(
            labels[row.key],
            row.cited,
            row.method is None,
            row.ours,
            row.ruled,
            (benchmark.backbone(table.dataset) if row.method else published.backbone(row.key)) or DASH,
            published.backbone(row.key) or DASH,
            tuple(place(row, column) for column in table.columns),
        )
        for row in table.rows
    )
    return TableView(
        table.key,
        fill(table.title, table.dataset, datasets),
        table.corner,
        _headers(table, datasets),
        rows,
        (*table.notes, *_task_notes(table, labels, estimates)),
        table.backbones,
    )


def _task_notes(table: Table, labels: Mapping[str, str], estimates: Mapping[tuple[str, str], Mean | None]) -> list[str]:
    """Say which columns rest on fewer tasks than the paper's, and which rows on fewer than the column's others."""
    fewer: dict[str, int] = {}
    reduced: dict[tuple[Way, int], None] = {}
    for column in table.columns:
        tasks = {labels[row.key]: one.tasks for row in table.rows if (one := estimates[row.key, column.key])}
        most = max(tasks.values(), default=0)
        fewer |= {label: number for label, number in tasks.items() if number < most}
        if 0 < most < PAPER_TASKS:
            reduced[column.way, most] = None
    columns = [f"With {way} unseen classes: {number:,} tasks, not {PAPER_TASKS:,}." for way, number in reduced]
    return columns + [
        f"{label} was measured on {number:,} tasks, fewer than the rows beside it." for label, number in fewer.items()
    ]


def _shown(number: PublishedNumber | None, best: bool) -> Shown | None:
    if number is None:
        return None
    return Shown(rounded(number.value), "" if number.interval is None else rounded(number.interval), best)


def _best(table: Table, values: Mapping[tuple[str, str], float]) -> set[tuple[str, str]]:
    """The best of each column as printed, ties together; a number without rivals is not called best."""
    best = set()
    for column in table.columns:
        shown = {key: float(f"{value:.{DECIMALS}f}") for key, value in values.items() if key[1] == column.key}
        if len(shown) > 1:
            winner = max(shown.values()) if column.best == "high" else min(shown.values())
            best |= {key for key, value in shown.items() if value == winner}
    return best


def _headers(table: Table, datasets: Mapping[str, DatasetFacts]) -> tuple[tuple[HeaderCell, ...], ...]:
    """HeaderCell rows from the outermost in; neighbours with the same outer headers share one."""
    levels = []
    for level in range(len(table.corner)):
        shared = [column.headers[: level + 1] for column in table.columns]
        headers, first = [], 1
        for labels, columns in groupby(shared):
            headers.append(HeaderCell(fill(labels[-1], table.dataset, datasets), first, first + len(list(columns)) - 1))
            first = headers[-1].last + 1
        levels.append(tuple(headers))
    return tuple(levels)
