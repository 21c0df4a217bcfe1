"""The whole paper from synthetic records: every file, traceable numbers, nothing that depends on the clock."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from repro.errors import BadInput
from repro.files import sha256
from repro.report.figure_layout import DIAGRAMS, FIGURES
from repro.report.layout import TABLES
from repro.report.needs import required_cells
from repro.results.paper_claims import CLAIMS, DESCRIBED
from tests.paths import ROOT
from tests.report.conftest import BENCHMARK, MISSING, OF_BEFORE, PAPER, Paper, render


def test_every_file_is_written(paper: Paper) -> None:
    for name in (
        "tables.tex",
        "figures.tex",
        "claims.tex",
        "claims.json",
        "claims.md",
        "protocol.md",
        "provenance.json",
        "report.html",
    ):
        assert (paper.out / name).stat().st_size > 1000, name
    figures = {file.name for file in (paper.out / "figures").iterdir()}
    assert figures == {
        *(f"{key}.{ending}" for key in DIAGRAMS for ending in ("tex", "svg")),
        *(f"{figure.name}.{ending}" for figure in FIGURES for ending in ("pdf", "png")),
        "F5_samples.pdf",
        "F5_samples.png",
    }


def test_the_renderer_says_what_happened(paper: Paper) -> None:
    assert paper.rendered.missing == (MISSING,)
    assert set(paper.rendered.verdicts) == {claim.key for claim in (*CLAIMS, *DESCRIBED)}
    sentence = rf"Of {len(CLAIMS)} claims \d+ hold, \d+ are tied, \d+ fail, and \d+ cannot be judged\."
    assert re.fullmatch(sentence, paper.rendered.summary)


def test_every_shown_number_traces_to_its_record(paper: Paper) -> None:
    provenance = json.loads((paper.out / "provenance.json").read_text())
    places = {number["place"] for number in provenance["numbers"]}
    assert {"T2/castle/1shot_hm", "T12/upper_bound/allway_gfsl", "F6", "F11"} <= places
    assert {number["cell"] for number in provenance["numbers"]} <= set(provenance["cells"])
    assert MISSING not in provenance["cells"]
    expected = sum(
        1
        for table in TABLES
        for row in table.rows
        for column in table.columns
        if (reading := table.reading(row, column)) and reading.cell.name != MISSING
    )
    assert sum("/" in number["place"] for number in provenance["numbers"]) == expected


def test_the_chain_leads_from_a_cell_to_its_dataset_and_to_the_users_own_runs(paper: Paper) -> None:
    provenance = json.loads((paper.out / "provenance.json").read_text())
    castle = provenance["cells"]["mini-castle-1shot"]["0"]
    evaluation = provenance["steps"][castle["evaluation"]]
    assert (
        evaluation["output"] == castle["sha256"] == sha256(paper.results / "mini-castle-1shot" / "0" / "tasks.parquet")
    )
    training = provenance["steps"][evaluation["inputs"]["model"]]
    pretraining = provenance["steps"][training["inputs"]["pretrained"]]
    dataset = provenance["steps"][pretraining["inputs"]["dataset"]]
    chain = (evaluation, training, pretraining, dataset)
    assert [step["stage"] for step in chain] == ["evaluate", "train", "pretrain", "splits"]
    assert all(step["settings"] and len(step["code"]) == 64 for step in chain)
    assert training["run"] == f"runs/by_output/{training['output']}/run.json"
    assert provenance["cells"][OF_BEFORE]["0"]["evaluation"] is None


def test_every_number_in_the_tables_is_listed(paper: Paper) -> None:
    provenance = json.loads((paper.out / "provenance.json").read_text())
    listed = {f"{number['mean']:.2f}" for number in provenance["numbers"]}
    table = (paper.out / "tables.tex").read_text().split(r"\begin{table}")[1]
    ours = [line for line in table.splitlines() if line.startswith(("DFSL", "CASTLE", "aCASTLE"))]
    shown = {number for line in ours for number in re.findall(r"\d+\.\d\d(?=}?\{)", line)}
    assert len(shown) > 10 and shown <= listed


def test_claims_are_listed_with_effect_and_what_is_missing(paper: Paper) -> None:
    claims = json.loads((paper.out / "claims.json").read_text())["claims"]
    assert MISSING in claims["hm-mini-1shot-5"]["missing"]
    assert claims["domains-office"]["missing"] == []
    text = (paper.out / "claims.tex").read_text()
    assert text.count(r" \\") >= len(CLAIMS)


def test_every_caption_carries_the_benchmark(paper: Paper) -> None:
    for name, captions in (("tables", len(TABLES)), ("figures", len(DIAGRAMS) + 1 + len(FIGURES)), ("claims", 1)):
        lines = (paper.out / f"{name}.tex").read_text().splitlines()
        marked = [line for line in lines if line.startswith(r"\caption") and BENCHMARK.line in line]
        assert len(marked) == captions
        assert rf"\gdef\benchmarkline{{{BENCHMARK.line}}}" in lines


def test_diagrams_take_their_counts_from_the_data(paper: Paper) -> None:
    split = (paper.out / "figures" / "F3.svg").read_text()
    for count in ("64 seen classes", "16 validation classes", "20 unseen classes", "1000 images", "50 images"):
        assert count in split
    assert "64 + 5 classes" in (paper.out / "figures" / "F4.tex").read_text()
    assert "75 images of S" in (paper.out / "figures" / "F4.tex").read_text()


def test_rendering_twice_gives_the_same_bytes(paper: Paper, tmp_path: Path) -> None:
    render(paper.results, tmp_path / "again", main=True)
    first, second = (
        {file.relative_to(out): file.read_bytes() for file in out.rglob("*") if file.is_file()}
        for out in (paper.out, tmp_path / "again")
    )
    assert first.keys() == second.keys()
    assert [str(name) for name in first if first[name] != second[name]] == []


def test_an_empty_results_folder_renders_dashes_and_open_claims(tmp_path: Path) -> None:
    rendered = render(tmp_path / "results", tmp_path / "out", form="ours")
    assert set(rendered.verdicts.values()) == {"cannot say", "described"}
    assert len(rendered.missing) == len(required_cells())
    table = (tmp_path / "out" / "tables.tex").read_text()
    assert r"CASTLE & -- & -- & -- & -- \\" in table
    assert rendered.pdf == "no PDF: there is no main.tex"


def test_rendering_reads_records_published_numbers_and_templates_alone(
    paper: Paper, tmp_path: Path, opened: Callable[[], list[Path]]
) -> None:
    render(paper.results, tmp_path / "out")
    ours = [file for file in opened() if not file.is_relative_to(tmp_path)]
    read = {file.relative_to(paper.results).name for file in ours if file.is_relative_to(paper.results)}
    assert read == {
        *("tasks.parquet", "curve.json", "metrics.json", "origin.json", "SHA256SUMS"),
        *("images.parquet", "confusions.parquet", "training.csv"),
    }
    inside = {file.relative_to(ROOT) for file in ours if file.is_relative_to(ROOT) and ".venv" not in file.parts}
    others = {
        file for file in inside if file.suffix not in (".py", ".pyc") and file.parts[:2] != ("paper", "templates")
    }
    assert others == {PAPER.relative_to(ROOT) / "published.yaml"}


def test_claims_name_methods_by_their_labels(paper: Paper) -> None:
    claims = json.loads((paper.out / "claims.json").read_text())["claims"]
    decided = {key: claim["decided"]["label"] for key, claim in claims.items()}
    assert re.fullmatch(r"aCASTLE − .+, mean accuracy, mini, 1-shot, 5 ways", decided["acc-1shot"])
    assert re.match(r"gap of a?CASTLE \(mini, 5-shot\) \(g?fsl\)", decided["upper-bound-gap"])
    assert not [label for label in decided.values() if re.search(r"-\w+-\dshot", label)]


def test_an_unknown_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="form is 'both', expected one of ours, beside"):
        render(tmp_path, tmp_path / "out", form="both")  # type: ignore[arg-type]


def test_the_pdf_has_every_table_and_figure(paper: Paper) -> None:
    if shutil.which("pdflatex") is None:
        assert paper.rendered.pdf.startswith("no PDF: none of latexmk, tectonic and pdflatex is installed")
        pytest.skip("no TeX here: the PDF was NOT compiled")
    assert paper.rendered.pdf.endswith("compiled with latexmk") or "compiled with" in paper.rendered.pdf
    assert (paper.out / "main.pdf").stat().st_size > 100_000
    assert not list(paper.out.glob("*.aux"))


def test_without_tex_the_renderer_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from repro.report.pdf import NO_TEX, compile_pdf

    monkeypatch.setenv("PATH", "")
    (tmp_path / "main.tex").write_text("")
    assert compile_pdf(tmp_path / "main.tex") == NO_TEX


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no TeX here: a broken document was NOT compiled")
def test_a_document_that_does_not_compile_is_named_with_its_log(tmp_path: Path) -> None:
    from repro.report.pdf import compile_pdf

    (tmp_path / "main.tex").write_text(r"\documentclass{article}\begin{document}\nosuchcommand\end{document}")
    message = compile_pdf(tmp_path / "main.tex")
    assert message.startswith("no PDF: ") and "see main.log" in message
    assert not (tmp_path / "main.pdf").exists()
