r"""Hostile strings (_ & % $ # { } ~ ^ \ <script>) reach TeX and HTML as text, never as code."""

import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from repro.cards import MethodCard
from repro.report.chains import CellView
from repro.report.class_views import ClassView, DatasetView, PairView
from repro.report.courses import Course
from repro.report.details import Details
from repro.report.diagrams import as_svg, as_tikz, read_scene
from repro.report.facts import Benchmark, Methods
from repro.report.html import render_report
from repro.report.measures import MEASURE_LABELS, Measure, MeasuresRow
from repro.report.tables import DASH, RowView, TableView
from repro.report.templates import Markup, markdown, markdown_environment, tex, tex_environment
from repro.results.origins import Step
from repro.results.provenance import Origin
from repro.results.store import Cell
from tests.report.conftest import DATASETS, PAPER

HOSTILE = (
    r"_ & % $ # { } ~ ^ \ <script>alert(1)</script> \input{/etc/passwd} ^^5c | ` \" é 汉" + "\n\x07{{ 7*7 }} \\VAR{x}"
)
TABLE = TableView(
    "T0", HOSTILE, (HOSTILE,), ((),), (RowView(HOSTILE, False, False, True, False, HOSTILE, "", ()),), (HOSTILE,), True
)


def test_every_special_character_is_escaped() -> None:
    assert tex(r"a_b & 50% $x$ #1 {y} ~ ^ \z") == (
        r"a\_b \& 50\% \$x\$ \#1 \{y\} \textasciitilde{} \textasciicircum{} \textbackslash{}z"
    )
    assert tex("S→S∪U, Δ ↓, CASTLE⁻") == r"S$\rightarrow$S$\cup$U, $\Delta$ $\downarrow$, CASTLE$^{-}$"
    assert tex("a\nb\x07汉") == "a bU+0007U+6C49"
    assert tex(Markup(r"\linewidth")) == r"\linewidth"
    assert tex(3) == "3"


def test_escaped_text_holds_no_active_character() -> None:
    escaped = tex("".join(map(chr, range(0x20, 0x2000))))
    plain = escaped.replace("\\\\", "")
    for character in "&%#_":
        assert plain.count(character) == plain.count("\\" + character)
    assert all(ord(character) < 0x7F for character in escaped)


def test_templates_escape_whatever_they_print() -> None:
    benchmark = Benchmark(HOSTILE, HOSTILE)
    page = tex_environment(PAPER / "templates").get_template("tables.tex")
    text = page.render(tables=[TABLE], benchmark=benchmark, form="beside", dash=DASH)
    assert r"\input{/etc" not in text and "<script>" not in text
    assert text.count(tex(HOSTILE)) >= 5


def test_markdown_shows_hostile_text_as_text() -> None:
    assert markdown("a|b *c* _d_ [e](f) <g> & `h` ~i~\nj") == (r"a\|b \*c\* \_d\_ \[e\](f) \<g> \& \`h\` \~i\~ j")
    page = markdown_environment(PAPER / "templates").get_template("claims.md")
    text = page.render(summary=HOSTILE, benchmark=Benchmark(HOSTILE, HOSTILE), claims=[], notes={})
    assert text.count(markdown(HOSTILE)) == 3 and not re.search(r"(?<!\\)<script", text)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is NOT installed: hostile text was NOT compiled")
def test_hostile_text_compiles(tmp_path: Path) -> None:
    body = "\n\n".join([tex(HOSTILE), tex("".join(map(chr, range(0x20, 0x17F)))), tex('→±×·…∪≥≤≈⁻†‡ΔΘΣαφ–—−|`"')])
    scene = read_scene(PAPER / "templates", "F1", replace(DATASETS["mini"], title=HOSTILE), 5, 15)
    hostile_scene = replace(scene, texts=tuple(replace(text, words=HOSTILE) for text in scene.texts))
    body += "\n\n" + as_tikz(PAPER / "templates", hostile_scene)
    main = (PAPER / "main.tex").read_text()
    preamble = main[: main.index(r"\begin{document}")]
    (tmp_path / "t.tex").write_text(f"{preamble}\\begin{{document}}\n{body}\n\\end{{document}}\n")
    run = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-2000:]


class Elements(HTMLParser):
    """Collects the tags of a page and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("methods", [1, 2])
def test_the_report_shows_hostile_text_as_text(methods: int) -> None:
    step = Step(HOSTILE, HOSTILE, 0, {HOSTILE: HOSTILE}, HOSTILE, HOSTILE, {})
    origin = Origin(HOSTILE, "0", HOSTILE, HOSTILE, replace(step, inputs={HOSTILE: step}))
    measured = Cell(HOSTILE, HOSTILE, 1)
    cell = CellView(measured.name, (HOSTILE,), (origin,), HOSTILE)
    hard, pair = ClassView(*[HOSTILE] * 6), PairView(HOSTILE, HOSTILE, (HOSTILE, HOSTILE), HOSTILE)
    shares, number = {HOSTILE: [0.5]}, Measure(HOSTILE, 1.0, 0.1, 0.2)
    dataset = DatasetView(
        HOSTILE, 5, 1, methods * (HOSTILE,), (hard,), (pair,), ((HOSTILE, HOSTILE, 1),), (HOSTILE,), shares
    )
    page = render_report(
        PAPER / "templates",
        Benchmark(HOSTILE, HOSTILE, HOSTILE),
        HOSTILE,
        tables=[TABLE],
        figures=[],
        claims=[],
        cells=[cell],
        measures=[MeasuresRow(measured.name, "gfsl", 5, 1, 1, (number, *[None] * (len(MEASURE_LABELS) - 1)))],
        details=Details((dataset,), {measured.name: (Course(0, HOSTILE, (), ()),)}),
        distributions={HOSTILE: {"seeds": {HOSTILE: HOSTILE}}},
        methods=Methods({HOSTILE: MethodCard(HOSTILE, HOSTILE, HOSTILE)}),
        all_cells=[measured],
        warnings=[HOSTILE],
    )
    elements = Elements()
    elements.feed(page)
    # The page's own, those of data, and where there is more than one method, what each class is to them.
    assert elements.tags.count("script") == 2 + methods
    assert f", {methods} method" in page and "1 methods" not in page
    assert (
        "<script>alert" in elements.text
        and "{{ 7*7 }}" in elements.text
        and "49" not in elements.text.replace(r"\u6c49", "")
    )


def test_a_diagram_shows_hostile_text_as_text() -> None:
    scene = read_scene(PAPER / "templates", "F4", DATASETS["mini"], 5, 15)
    hostile = replace(scene, boxes=(replace(scene.boxes[0], lines=(HOSTILE,)),))
    assert "<script>" not in as_svg(PAPER / "templates", hostile, HOSTILE)
    assert tex(HOSTILE) in as_tikz(PAPER / "templates", hostile)
