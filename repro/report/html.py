"""The report as one page that needs nothing but itself: pictures inlined, no request to anywhere."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from repro.report.claim_views import ClaimView
from repro.report.facts import Benchmark
from repro.report.measures import MEASURES, MeasuresRow
from repro.report.tables import DASH, TableView
from repro.report.templates import html_environment
from repro.results.provenance import Origin

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


@dataclass(frozen=True)
class CellView:
    """One cell as the report lists it: its origin (None where it was not evaluated) and how to make it again."""

    name: str
    needed_by: tuple[str, ...]
    origin: Origin | None
    command: str

    @property
    def params(self) -> str:
        """The run's parameters, readable."""
        return json.dumps(self.origin.params, indent=1, sort_keys=True, ensure_ascii=False) if self.origin else ""


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
) -> str:
    """The whole page."""
    template = html_environment(templates).get_template("report.html")
    pictures = {figure.key: data_uri(figure.picture) for figure in figures}
    evaluated = {cell.name for cell in cells if cell.origin}
    return template.render(
        benchmark=benchmark,
        summary=summary,
        tables=tables,
        figures=figures,
        pictures=pictures,
        claims=claims,
        cells=cells,
        measures=measures,
        measure_headers=tuple(MEASURES.values()),
        evaluated=evaluated,
        verdicts=("holds", "fails", "cannot say"),
        dash=DASH,
    )
