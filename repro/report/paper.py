"""Everything the paper shows, from records: the one function that a stage calls."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

from repro.cards import MethodCard
from repro.errors import BadInput
from repro.report.budgets import draw_budgets, view_budgets
from repro.report.chains import view_cells
from repro.report.claim_views import ClaimView, coverage_notes, summary, view_claims
from repro.report.details import Details, view_details
from repro.report.distributions import distributions
from repro.report.facts import Benchmark, DatasetFacts, Methods
from repro.report.figure_layout import Figure
from repro.report.floor import floor_warnings
from repro.report.html import render_report
from repro.report.layout import Table
from repro.report.measures import MEASURE_LABELS, evaluations, view_measures
from repro.report.needs import cells_behind, with_further
from repro.report.pdf import compile_pdf
from repro.report.pictures import write_diagrams, write_pictures
from repro.report.printed import TEXT, Printed
from repro.report.protocol_card import PROTOCOLS
from repro.report.rows import with_rows
from repro.report.tables import DASH, TableView, view_table
from repro.report.templates import markdown_environment, tex_environment, write_page
from repro.results.chance import cells_at_chance
from repro.results.contents import TaskContents
from repro.results.paper_claims import DESCRIBED, paper_claims
from repro.results.provenance import Traced, as_json
from repro.results.published import NOTHING_PUBLISHED, PublishedTable, read_published, require_shown
from repro.results.records import MEASURES
from repro.results.store import Cell, Reading, Results
from repro.results.tuning import NOTHING_TUNED, Tuning

Form = Literal["ours", "beside"]


@dataclass(frozen=True)
class Rendered:
    """What happened: the claims in one sentence and by key, cells without records, and a sentence about the PDF.

    `warnings` name trained methods that lie below the floor.
    """

    summary: str
    verdicts: dict[str, str]
    missing: tuple[str, ...]
    pdf: str
    warnings: tuple[str, ...] = ()


def render_paper(
    results_folder: Path,
    datasets: Mapping[str, DatasetFacts],
    cards: Mapping[str, MethodCard],
    benchmark: Benchmark,
    *,
    published_file: Path,
    templates: Path,
    out: Path,
    form: Form,
    way: int,
    query: int,
    reproduce: Callable[[str], str],
    contents: Callable[[str], TaskContents | None] = lambda _: None,
    same_classes: bool = False,
    rows: Sequence[str] = (),
    trained: Collection[str] = (),
    tuning: Tuning = NOTHING_TUNED,
    details: Details | None = None,
) -> Rendered:
    """Write tables.tex, figures{.tex,/}, claims.{tex,md,json}, protocol.md, provenance.json, report.html and main.pdf.

    `out` holds main.tex already; without it, or without TeX, there is no PDF and the result says so. `form` chooses
    whether tables.tex shows our numbers alone or beside the published ones. `way` and `query` are those of the tasks
    that diagrams show. `reproduce` gives the command that makes a cell again, empty where there is none. `cards` are
    those of all methods by name; `rows` names methods that the paper lacks: they stand beside its own, and claims are
    held against them too. `contents` gives what the tasks of a list, named by its digest, are made of, and
    `same_classes` says that seeds share classes and images: verdicts need both. `trained` are the methods that a floor
    row is held against, `tuning` is what their budgets were chosen by. `details` are shown instead of those that the
    results have, where somebody kept them. Raises BadInput for an unknown form or row, and for files that are not what
    they should be.
    """
    _require_known(form, rows, cards)
    unseen = {name: facts.unseen for name, facts in datasets.items()}
    seen = {name: facts.seen for name, facts in datasets.items()}
    results = Results(results_folder, unseen, contents, same_classes)
    methods, judged = Methods(cards, rows), paper_claims(rows)
    layout, drawn = with_rows(rows, results.has)
    published = _read_published(published_file, layout, cards)
    tables = [
        view_table(table, results, published.get(table.key, NOTHING_PUBLISHED), datasets, benchmark, methods)
        for table in layout
    ]
    claims = view_claims(judged, DESCRIBED, results, Printed(published, layout), methods)
    needs = with_further(cells_behind(layout, drawn, judged, results.has), results.cells())
    all_cells = [need.cell for need in needs]
    cells = view_cells(results, needs, reproduce)
    figures = [
        *write_diagrams(datasets, templates, out / "figures", way, query),
        *write_pictures(drawn, results, datasets, methods, out / "figures"),
    ]
    sentence = summary(claims)
    warnings = (*cells_at_chance(results, all_cells, seen, way), *floor_warnings(results, all_cells, trained, methods))
    pages = {"tables": tables, "figures": figures, "claims": claims}
    shown = {"summary": sentence, "notes": coverage_notes(claims), "benchmark": benchmark}
    for name in pages:
        text = tex_environment(templates).get_template(f"{name}.tex")
        write_page(out / f"{name}.tex", text.render(pages, **shown, form=form, dash=DASH))
    listed = markdown_environment(templates).get_template("claims.md")
    write_page(out / "claims.md", listed.render(claims=claims, **shown))
    write_page(out / "claims.json", _claims_json(sentence, claims))
    protocol = markdown_environment(templates).get_template("protocol.md")
    write_page(out / "protocol.md", protocol.render(protocols=PROTOCOLS, query=query))
    origins = [origin for cell in cells for origin in cell.origins]
    write_page(out / "provenance.json", as_json(origins, _numbers(tables, drawn, results)))
    write_page(
        out / "report.html",
        render_report(
            templates,
            benchmark,
            sentence,
            tables=tables,
            figures=figures,
            claims=claims,
            cells=cells,
            measures=view_measures(results, all_cells),
            details=details or view_details(results, datasets, methods, way),
            distributions=distributions(results, _all_readings(tables, results, all_cells), datasets),
            methods=methods,
            all_cells=all_cells,
            warnings=warnings,
            budgets=view_budgets(tuning, methods),
            budgets_picture=draw_budgets(tuning, methods, out / "figures") if tuning != NOTHING_TUNED else None,
        ),
    )
    return Rendered(
        sentence,
        {claim.key: claim.verdict for claim in claims},
        tuple(cell.name for cell in cells if not cell.origins),
        compile_pdf(out / "main.tex"),
        warnings,
    )


def _require_known(form: Form, rows: Sequence[str], cards: Mapping[str, MethodCard]) -> None:
    if form not in get_args(Form):
        raise BadInput(f"form is {form!r}, expected one of {', '.join(get_args(Form))}; set it in params.yaml")
    for name in rows:
        if name not in cards:
            message = f"the paper's rows name {name!r}, which is no method, expected some of {', '.join(cards)}"
            raise BadInput(f"{message}; correct them in params.yaml")


def _read_published(file: Path, tables: Sequence[Table], methods: Collection[str]) -> dict[str, PublishedTable]:
    """The published numbers; those of methods that stand in no table today are welcome in tables that take rows."""
    published = read_published(file)
    rows = {
        table.key: dict.fromkeys([row.key for row in table.rows] + list(methods) * table.takes_rows) for table in tables
    }
    columns = {table.key: [column.key for column in table.columns] for table in tables}
    in_text: dict[str, tuple[Collection[str], Collection[str]]] = {TEXT: (methods, MEASURES)}
    require_shown(published, {key: (rows[key], columns[key]) for key in rows} | in_text, file)
    return published


def _numbers(tables: Sequence[TableView], drawn: Sequence[Figure], results: Results) -> list[Traced]:
    """Every number of ours that a table or a figure shows."""
    places = [place for table in tables for row in table.rows for place in row.places]
    shown = [Traced(place.key, place.reading, place.estimate) for place in places if place.reading and place.estimate]
    for figure in drawn:
        readings = [(reading, results.estimate(reading)) for reading in figure.readings()]
        shown += [Traced(figure.key, reading, found) for reading, found in readings if found]
    return shown


def _all_readings(tables: Sequence[TableView], results: Results, cells: Sequence[Cell]) -> list[Reading]:
    """Every number that the report can be asked about."""
    shown = [place.reading for table in tables for row in table.rows for place in row.places if place.reading]
    every = [(cell, *group) for cell in cells for group in evaluations(results, cell)]
    return [*shown, *(Reading(*evaluated, measure) for evaluated in every for measure in MEASURE_LABELS)]


def _claims_json(sentence: str, claims: Sequence[ClaimView]) -> str:
    content = {"summary": sentence, "claims": {claim.key: asdict(claim) for claim in claims}}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
