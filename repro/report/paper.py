"""Everything the paper shows, from records: the one function that a stage calls."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from repro.errors import BadInput
from repro.files import whole_file
from repro.report.claim_views import ClaimView, summary, view_claims
from repro.report.diagrams import as_svg, as_tikz, read_scene
from repro.report.facts import Benchmark, DatasetFacts, fill
from repro.report.figure_layout import DIAGRAMS, FIGURES, SAMPLES_KEY, SAMPLES_TITLE
from repro.report.html import CellView, FigureView, render_report
from repro.report.layout import TABLES
from repro.report.measures import view_measures
from repro.report.needs import required_cells
from repro.report.pdf import compile_pdf
from repro.report.tables import DASH, TableView, view_table
from repro.report.templates import markdown_environment, tex_environment
from repro.results.paper_claims import CLAIMS
from repro.results.provenance import Origin, Traced, WritingRun, as_json, origin, read_dvc_hashes
from repro.results.published import PublishedTable, read_published
from repro.results.records import RECORDS
from repro.results.store import Results

Form = Literal["ours", "beside"]
DIAGRAM_DATASET = "mini"
WIDE = ("F5", "F7")


@dataclass(frozen=True)
class Rendered:
    """What happened: the claims in one sentence and by key, cells without records, and a sentence about the PDF."""

    summary: str
    verdicts: dict[str, str]
    missing: tuple[str, ...]
    pdf: str


def render_paper(
    results_folder: Path,
    datasets: Mapping[str, DatasetFacts],
    benchmark: Benchmark,
    *,
    published_file: Path,
    templates: Path,
    out: Path,
    form: Form,
    way: int,
    query: int,
    dvc_lock: Path,
    runs: Mapping[str, WritingRun],
    reproduce: Callable[[str], str],
) -> Rendered:
    """Write tables.tex, figures.tex, figures/, claims.{tex,md,json}, provenance.json, report.html and main.pdf.

    `out` holds main.tex already; without it, or without TeX, there is no PDF and the result says so. `form` chooses
    whether tables.tex shows our numbers alone or beside the published ones. `runs` are the runs that wrote the records,
    by the record's content hash. `way` and `query` are those of the tasks that diagrams show. `reproduce` gives the
    command that makes a cell again. Raises BadInput for an unknown form and for files that are not what they should be.
    """
    if form not in get_args(Form):
        raise BadInput(f"form is {form!r}, expected one of {', '.join(get_args(Form))}; set it in params.yaml")
    results = Results(results_folder, {name: facts.unseen for name, facts in datasets.items()})
    published = read_published(published_file)
    _require_rows(published, published_file)
    tables = [view_table(table, results, published[table.key], datasets, benchmark) for table in TABLES]
    claims = view_claims(CLAIMS, results)
    figures = [
        *_diagrams(datasets, templates, out / "figures", way, query),
        *_pictures(results, datasets, out / "figures"),
    ]
    cells = _cells(results, read_dvc_hashes(dvc_lock), runs, reproduce)
    sentence = summary(claims)
    pages = {"tables": tables, "figures": figures, "claims": claims}
    for name in pages:
        text = tex_environment(templates).get_template(f"{name}.tex")
        _write(out / f"{name}.tex", text.render(pages, benchmark=benchmark, form=form, dash=DASH, summary=sentence))
    listed = markdown_environment(templates).get_template("claims.md")
    _write(out / "claims.md", listed.render(summary=sentence, claims=claims, benchmark=benchmark))
    _write(out / "claims.json", _claims_json(sentence, claims))
    origins = [cell.origin for cell in cells if cell.origin]
    _write(out / "provenance.json", as_json(origins, _numbers(tables, results)))
    _write(
        out / "report.html",
        render_report(
            templates,
            benchmark,
            sentence,
            tables=tables,
            figures=figures,
            claims=claims,
            cells=cells,
            measures=view_measures(results),
        ),
    )
    main = out / "main.tex"
    return Rendered(
        sentence,
        {claim.key: claim.verdict for claim in claims},
        tuple(cell.name for cell in cells if cell.origin is None),
        compile_pdf(main) if main.is_file() else f"no PDF: there is no {main}",
    )


def _require_rows(published: Mapping[str, PublishedTable], file: Path) -> None:
    """Raise BadInput for the first row that a table shows and the published numbers do not have."""
    for table in TABLES:
        rows = published[table.key].rows if table.key in published else {}
        missing = [row.key for row in table.rows if row.key not in rows]
        if missing:
            raise BadInput(f"{file}: {table.key} has no row {missing[0]}; restore it with `git checkout {file}`")


def _write(file: Path, text: str) -> None:
    with whole_file(file) as partial:
        partial.write_text(text, encoding="utf-8")


def _diagrams(
    datasets: Mapping[str, DatasetFacts], templates: Path, folder: Path, way: int, query: int
) -> list[FigureView]:
    """F1-F4 as TikZ and SVG files; none where their dataset is not at hand."""
    if DIAGRAM_DATASET not in datasets:
        return []
    views = []
    for key, words in DIAGRAMS.items():
        title = fill(words, DIAGRAM_DATASET, datasets)
        scene = read_scene(templates, key, datasets[DIAGRAM_DATASET], way, query)
        _write(folder / f"{key}.tex", as_tikz(templates, scene))
        _write(folder / f"{key}.svg", as_svg(templates, scene, title))
        views.append(FigureView(key, key, title, "tikz", True, folder / f"{key}.svg"))
    return views


def _pictures(results: Results, datasets: Mapping[str, DatasetFacts], folder: Path) -> list[FigureView]:
    """F5-F11 as PDF and PNG files."""
    from repro.report.figures import draw_figures, draw_samples

    name = f"{SAMPLES_KEY}_samples"
    draw_samples(datasets, folder, name)
    draw_figures(results, folder)
    samples = FigureView(SAMPLES_KEY, name, SAMPLES_TITLE, "image", SAMPLES_KEY in WIDE, folder / f"{name}.png")
    return [
        samples,
        *(
            FigureView(
                figure.key,
                figure.name,
                fill(figure.title, figure.lines[0].cell.dataset, datasets),
                "image",
                figure.key in WIDE,
                folder / f"{figure.name}.png",
                tuple(dict.fromkeys(reading.cell.name for reading in figure.readings())),
            )
            for figure in FIGURES
        ),
    ]


def _cells(
    results: Results, dvc_hashes: dict[str, str], runs: Mapping[str, WritingRun], reproduce: Callable[[str], str]
) -> list[CellView]:
    """Every cell the paper needs, with its origin where it was evaluated."""

    def found(name: str) -> Origin | None:
        evaluated = (results.folder / name / RECORDS).is_file()
        return origin(results.folder, name, dvc_hashes, runs) if evaluated else None

    return [
        CellView(need.cell.name, need.needed_by, found(need.cell.name), reproduce(need.cell.name))
        for need in required_cells()
    ]


def _numbers(tables: Sequence[TableView], results: Results) -> list[Traced]:
    """Every number of ours that a table or a figure shows."""
    places = [place for table in tables for row in table.rows for place in row.places]
    shown = [Traced(place.key, place.reading, place.estimate) for place in places if place.reading and place.estimate]
    for figure in FIGURES:
        readings = [(reading, results.estimate(reading)) for reading in figure.readings()]
        shown += [Traced(figure.key, reading, found) for reading, found in readings if found]
    return shown


def _claims_json(sentence: str, claims: Sequence[ClaimView]) -> str:
    content = {
        "summary": sentence,
        "claims": {
            claim.key: {
                "statement": claim.statement,
                "shown_in": claim.shown_in,
                "verdict": claim.verdict,
                "effect": claim.effect,
                "interval": claim.interval,
                "p_value": claim.p_value,
                "decided_by": claim.decided_by,
                "missing": list(claim.missing),
            }
            for claim in claims
        },
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
