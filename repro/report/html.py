"""The report as one page that needs nothing but itself: pictures inlined, no request to anywhere."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from repro.report.budgets import BudgetRow
from repro.report.chains import CellView, view_steps
from repro.report.claim_views import VERDICTS, ClaimView, coverage_notes
from repro.report.claim_words import WORDS
from repro.report.details import Details
from repro.report.facts import Benchmark, Methods
from repro.report.measures import LABEL_SETS, MEASURE_LABELS, MeasuresRow, as_csv
from repro.report.tables import DASH, TableView
from repro.report.templates import html_environment
from repro.results.store import Cell

_TYPES = {".png": "image/png", ".svg": "image/svg+xml"}


@dataclass(frozen=True)
class FigureView:
    """One figure: `name` of its files, `picture` the file that the report inlines, and the cells behind it."""

    key: str
    name: str
    title: str
    drawing: str  # "tikz" or "image": how the paper includes it
    wide: bool
    picture: Path
    cells: tuple[str, ...] = ()


def data_uri(file: Path) -> str:
    """A picture as text that an <img> can show."""
    return f"data:{_TYPES[file.suffix]};base64,{b64encode(file.read_bytes()).decode()}"


def render_report(
    templates: Path,
    benchmark: Benchmark,
    summary: str,
    *,
    tables: Sequence[TableView],
    figures: Sequence[FigureView],
    claims: Sequence[ClaimView],
    cells: Sequence[CellView],
    measures: Sequence[MeasuresRow],
    details: Details,
    distributions: Mapping[str, Any],
    methods: Methods,
    all_cells: Sequence[Cell],
    warnings: Sequence[str] = (),
    budgets: Sequence[BudgetRow] = (),
    budgets_picture: Path | None = None,
) -> str:
    """The whole page."""
    template = html_environment(templates).get_template("report.html")
    pictures = {figure.key: data_uri(figure.picture) for figure in figures}
    evaluated = {cell.name for cell in cells if cell.origins}
    titles = {cell.name: methods.title(cell) for cell in all_cells}
    return template.render(
        benchmark=benchmark,
        summary=summary,
        tables=tables,
        figures=figures,
        pictures=pictures,
        claims=claims,
        cells=cells,
        steps=view_steps(cells),
        measures=measures,
        measure_headers=tuple(MEASURE_LABELS.values()),
        measure_words=WORDS,
        label_sets=LABEL_SETS,
        measures_csv=b64encode(as_csv(measures).encode()).decode(),
        datasets=details.datasets,
        distributions=distributions,
        trainings={name: list(map(asdict, details.trainings[name])) for name in titles if name in details.trainings},
        titles=titles,
        statements={claim.key: claim.statement for claim in claims},
        places={table.key for table in tables} | {figure.key for figure in figures},
        methods=[(methods.label(name), methods.card(name)) for name in dict.fromkeys(one.method for one in all_cells)],
        evaluated=evaluated,
        warnings=warnings,
        notes=coverage_notes(claims),
        verdicts=VERDICTS,
        budgets=budgets,
        budgets_picture=data_uri(budgets_picture) if budgets_picture else "",
        dash=DASH,
    )
