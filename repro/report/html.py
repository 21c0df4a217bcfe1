"""The report as one page that needs nothing but itself: pictures inlined, no request to anywhere."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from repro.report.budgets import BudgetRow
from repro.report.chains import CellView, view_steps
from repro.report.claim_views import VERDICTS, ClaimView, coverage_notes
from repro.report.facts import Benchmark, Methods
from repro.report.measures import MEASURES, MeasuresRow
from repro.report.tables import DASH, TableView
from repro.report.templates import html_environment

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
    return f"data:{_TYPES[file.suffix]};base64,{base64.b64encode(file.read_bytes()).decode()}"


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
    methods: Methods,
    shown_methods: Sequence[str],
    warnings: Sequence[str] = (),
    budgets: Sequence[BudgetRow] = (),
    budgets_picture: Path | None = None,
) -> str:
    """The whole page."""
    template = html_environment(templates).get_template("report.html")
    pictures = {figure.key: data_uri(figure.picture) for figure in figures}
    evaluated = {cell.name for cell in cells if cell.origins}
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
        measure_headers=tuple(MEASURES.values()),
        methods=[(methods.label(name), methods.card(name)) for name in shown_methods],
        evaluated=evaluated,
        warnings=warnings,
        notes=coverage_notes(claims),
        verdicts=VERDICTS,
        budgets=budgets,
        budgets_picture=data_uri(budgets_picture) if budgets_picture else "",
        dash=DASH,
    )
