"""Tables: exact cells from a record set whose means are known by hand."""

from pathlib import Path

import numpy as np
import pytest

from repro.report.layout import TABLES
from repro.report.tables import DASH, Place, TableView, difference, rounded, signed, view_table
from repro.report.templates import tex_environment
from repro.results.published import read_published
from repro.results.store import Cell, Results
from tests.report.conftest import BENCHMARK, DATASETS, KNOWN, PAPER
from tests.report.synthetic import UNSEEN, noisy, write_cell

# HM of T1a by method: a tie after rounding between the last two, which differ before it.
HM = {"dfsl": 40.0, "castle": 52.8125, "acastle": 52.8125 + 1 / 1024}
DELTA = {"l2ml": 30.0, "dfsl": 9.0, "castle": 10.0}


def values(cell: Cell, protocol: str, way: int, measure: str) -> np.ndarray:
    """Four tasks around a known mean; exact in float32."""
    level = {"hm": HM, "delta": DELTA}.get(measure, {}).get(cell.method, 50.0)
    return level + np.array([-1.0, 1.0, -1.0, 1.0])


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TableView]:
    folder = tmp_path_factory.mktemp("results")
    write_cell(folder, Cell("mini", "castle", 1, "classifiers64"), [("gfsl", 5)], values)
    for method in HM:
        write_cell(folder, Cell("heterogeneous", method, 1), [("gfsl", 5)], values)
    for method in DELTA:
        write_cell(folder, Cell("mini", method, 1), [("gfsl", 5), ("gfsl", 20), ("fsl", 5), ("fsl", 20)], values)
    write_cell(
        folder,
        Cell("mini", "upper_bound", 5),
        [("gfsl", 5), ("fsl", 5)],
        lambda *key: np.full(3, 80.0 + ("cal_hm" in key)),
    )
    published = read_published(PAPER / "published.yaml")
    results = Results(folder, UNSEEN)
    return {table.key: view_table(table, results, published[table.key], DATASETS, BENCHMARK, KNOWN) for table in TABLES}


def place(views: dict[str, TableView], key: str) -> Place:
    return next(place for view in views.values() for row in view.rows for place in row.places if place.key == key)


def tex_of(views: dict[str, TableView], key: str, form: str) -> list[str]:
    template = tex_environment(PAPER / "templates").get_template("tables.tex")
    return template.render(tables=[views[key]], benchmark=BENCHMARK, form=form, dash=DASH).splitlines()


@pytest.mark.parametrize(
    ("value", "text"),
    [(12.345678, "12.35"), (0.0, "0.00"), (-0.001, "0.00"), (-3.456, "−3.46"), (100.0, "100.00"), (9.996, "10.00")],
)
def test_numbers_are_printed_with_two_digits(value: float, text: str) -> None:
    assert rounded(value) == text


def test_differences_are_those_of_the_printed_numbers() -> None:
    assert difference(66.224999, 66.22) == "0.00"
    assert difference(66.2251, 66.22) == "+0.01"
    assert signed(-0.004) == "0.00"
    assert difference(60.0, 66.22) == "−6.22"


def test_means_and_intervals_are_those_of_the_records(views: dict[str, TableView]) -> None:
    shown = place(views, "T1a/dfsl/hm").ours
    # std 1 over 4 tasks: 1.96 / 2
    assert shown is not None and (shown.mean, shown.interval, shown.best) == ("40.00", "0.98", False)


def test_ties_as_printed_are_bold_together(views: dict[str, TableView]) -> None:
    best = [row.label for row in views["T1a"].rows if row.places[-1].ours and row.places[-1].ours.best]
    assert best == ["CASTLE", "aCASTLE"]


def test_lower_delta_is_better(views: dict[str, TableView]) -> None:
    best = [row.label for row in views["T2"].rows if row.places[1].ours and row.places[1].ours.best]
    assert best == ["DFSL"]
    printed = [row.label for row in views["T2"].rows if row.places[1].published and row.places[1].published.best]
    assert printed == ["aCASTLE"]


def test_a_missing_cell_is_a_dash_and_never_a_number(views: dict[str, TableView]) -> None:
    missing = place(views, "T1a/castle_minus/hm")
    assert (missing.ours, missing.difference) == (None, DASH)
    assert missing.published is not None and missing.published.mean == "47.50"
    empty = place(views, "T2/ifsl/1shot_hm")
    assert (empty.ours, empty.published, empty.difference) == (None, None, DASH)


def test_a_number_without_rivals_is_not_called_best(views: dict[str, TableView]) -> None:
    lone = place(views, "T11/castle/classifiers64")
    assert lone.ours is not None and not lone.ours.best


def test_the_upper_bound_is_scored_by_its_calibrated_hm(views: dict[str, TableView]) -> None:
    bound = place(views, "T12/upper_bound/5way_gfsl")
    assert bound.ours is not None and bound.ours.mean == "81.00"
    assert bound.reading is not None and bound.reading.measure == "cal_hm"


def test_the_form_ours_prints_our_numbers_alone(views: dict[str, TableView]) -> None:
    lines = tex_of(views, "T1a", "ours")
    bold = r"\textbf{52.81}{\tiny\,$\pm$\,0.98}"
    assert r"CASTLE & \textbf{50.00}{\tiny\,$\pm$\,0.98}" in "\n".join(lines)
    assert lines[lines.index(r"\midrule") + 2] == r"CASTLE$^{-}$ & -- & -- & -- & -- \\"
    assert any(line.startswith("aCASTLE") and line.endswith(bold + r" \\") for line in lines)
    assert not any("published" in line or "48.13" in line for line in lines)


def test_the_form_beside_adds_published_and_difference(views: dict[str, TableView]) -> None:
    lines = tex_of(views, "T1a", "beside")
    first = lines.index(r"\midrule") + 1
    tie = r"\textbf{50.00}{\tiny\,$\pm$\,0.98}"
    assert lines[first] == rf"DFSL & {tie} & {tie} & {tie} & 40.00{{\tiny\,$\pm$\,0.98}} \\"
    numbers = [("48.13", "0.12"), ("46.33", "0.12"), ("48.25", "0.22"), ("47.27", "0.12")]
    printed = " & ".join(rf"{mean}{{\tiny\,$\pm$\,{interval}}}" for mean, interval in numbers)
    assert lines[first + 1] == rf"\quad published & {printed} \\"
    assert lines[first + 2] == r"\quad difference & +1.87 & +3.67 & +1.75 & $-$7.27 \\"


def test_quoted_rows_show_the_cited_number_in_both_forms(views: dict[str, TableView]) -> None:
    cited = r"TapNet\,(cited) & ResNet-12 & 61.65{\tiny\,$\pm$\,0.15} & 76.36{\tiny\,$\pm$\,0.10} & -- & -- \\"
    for form in ("ours", "beside"):
        lines = tex_of(views, "T5", form)
        assert cited in lines
        assert any(line.startswith("Rows marked (cited)") for line in lines)
    assert any(line.startswith(r"CASTLE & Conv-4 & ") for line in tex_of(views, "T5", "ours"))


def test_headers_take_their_counts_from_the_data(views: dict[str, TableView]) -> None:
    top, middle, bottom = views["T4"].headers
    assert [(header.label, header.span) for header in top] == [
        ("60 unseen classes", 2),
        ("120 seen + 60 unseen classes", 6),
    ]
    assert [header.span for header in middle] == [2, 2, 2, 2]
    assert [header.label for header in bottom] == ["1-Shot", "5-Shot"] * 4


@pytest.mark.parametrize(("table", "words"), [("T7", "aCASTLE"), ("T12", "1-shot HM of T3"), ("T11", "128")])
def test_the_papers_slips_are_notes(table: str, words: str, views: dict[str, TableView]) -> None:
    notes = [line for line in tex_of(views, table, "beside") if line.startswith("Note: ")]
    assert any(words in note for note in notes)


def test_every_caption_names_the_benchmark(views: dict[str, TableView]) -> None:
    for key in views:
        caption = next(line for line in tex_of(views, key, "ours") if line.startswith(r"\caption"))
        assert BENCHMARK.line in caption


def test_no_records_at_all_render_as_dashes(tmp_path: Path) -> None:
    published = read_published(PAPER / "published.yaml")
    for table in TABLES:
        view = view_table(table, Results(tmp_path, {}), published[table.key], {}, BENCHMARK, KNOWN)
        assert all(place.ours is None for row in view.rows for place in row.places)


def test_fewer_tasks_than_beside_are_noted(tmp_path: Path) -> None:
    for method, tasks in (("lwf", 8), ("castle", 32)):
        write_cell(tmp_path / "results", Cell("mini", method, 1), [("gfsl", 5)], noisy(tasks=tasks))
    table = next(table for table in TABLES if table.key == "T8")
    view = view_table(
        table,
        Results(tmp_path / "results", UNSEEN),
        read_published(PAPER / "published.yaml")["T8"],
        DATASETS,
        BENCHMARK,
        KNOWN,
    )
    assert view.notes == (
        *table.notes,
        "With 5 unseen classes: 32 tasks, not 10,000.",
        "LwF was measured on 8 tasks, fewer than the rows beside it.",
    )
