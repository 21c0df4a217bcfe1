"""A method, dataset, table or figure that the paper lacks stands beside its own; its published side stays empty."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from repro.cards import Look, MethodCard
from repro.errors import BadInput
from repro.report import rows
from repro.report.facts import Methods
from repro.report.figure_layout import FIGURES, Line
from repro.report.layout import TABLES, Row
from repro.report.needs import required_cells, shown_datasets
from repro.report.rows import with_rows
from repro.report.tables import DASH, TableView, view_table
from repro.results.published import NOTHING_PUBLISHED
from repro.results.store import Cell, Results
from tests.report.conftest import BENCHMARK, CARDS, DATASETS, KNOWN, PUBLISHED, Paper, render
from tests.report.synthetic import noisy, write_cell

MINE = "mymethod"
ONE_SHOT = [("gfsl", 5), ("gfsl", 10), ("gfsl", 15), ("gfsl", 20), ("fsl", 20)]
NEW_TABLE = replace(TABLES[2], key="T21", title="CASTLE alone on {dataset}", rows=(Row("castle", "castle"),))
NEW_FIGURE = replace(FIGURES[0], key="F21", name="F21_castle", lines=(Line(Cell("mini", "castle", 1)),))


@pytest.fixture(scope="module")
def extended(paper: Paper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The paper with a row of one's own (1-shot on mini), a dataset, a table and a figure more, and fewer numbers."""
    folder = tmp_path_factory.mktemp("extended")
    for cell in paper.results.iterdir():
        (folder / "results" / cell.name).parent.mkdir(exist_ok=True)
        (folder / "results" / cell.name).symlink_to(cell)
    write_cell(folder / "results", Cell("mini", MINE, 1), ONE_SHOT, noisy())
    published = yaml.safe_load(PUBLISHED.read_text())
    del published["T3"], published["T2"]["rows"]["castle"]
    published["T4"]["rows"]["ifsl"] = published["T4"]["rows"]["dfsl"]  # may wait for its row to be shown
    (folder / "published.yaml").write_text(yaml.safe_dump(published, sort_keys=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "TABLES", (*TABLES, NEW_TABLE))
        patch.setattr(rows, "FIGURES", (*FIGURES, NEW_FIGURE))
        render(
            folder / "results",
            folder / "out",
            published=folder / "published.yaml",
            cards=CARDS | {MINE: MethodCard()},
            datasets=DATASETS | {"birds": replace(DATASETS["office"], title="birds")},
            rows=[MINE],
        )
    yield folder / "out"


def tex_of(out: Path, key: str) -> str:
    """One table of tables.tex."""
    (found,) = [
        part for part in (out / "tables.tex").read_text().split(r"\begin{table}") if rf"\textbf{{{key}.}}" in part
    ]
    return found


def test_a_method_of_ones_own_stands_below_the_papers_rows(extended: Path) -> None:
    lines = tex_of(extended, "T2").splitlines()
    (mine,) = [place for place, line in enumerate(lines) if line.startswith(MINE)]
    one_shot, five_shot = lines[mine].split(" & ")[1], lines[mine].split(" & ")[3]
    assert lines[mine].startswith(rf"{MINE}\,(added) & ") and r"$\pm$" in one_shot and five_shot == "--"
    assert lines[mine - 1] == r"\midrule"
    assert lines[mine + 1] == r"\quad published & -- & -- & -- & -- & -- & -- \\"
    assert "Rows marked (added) are not in the paper." in lines
    assert MINE in tex_of(extended, "T3")
    assert MINE not in tex_of(extended, "T4"), "there is no cell of it on tiered"
    assert MINE not in tex_of(extended, "T8")


def test_its_numbers_are_traced_as_the_others_are(extended: Path) -> None:
    provenance = json.loads((extended / "provenance.json").read_text())
    places = {number["place"] for number in provenance["numbers"] if number["cell"] == f"mini-{MINE}-1shot"}
    assert places >= {f"T2/{MINE}/1shot_hm", f"T3/{MINE}/1shot_u_u", "F6", "F7", "F8", "F9"}
    assert "F10" not in places
    assert "added, not in the paper" in (extended / "report.html").read_text()


def test_claims_are_held_against_it_and_link_its_cell(extended: Path) -> None:
    claims = json.loads((extended / "claims.json").read_text())["claims"]
    assert f"mini-{MINE}-1shot" in claims["ausuc-5"]["cells"]
    assert f"mini-{MINE}-5shot" not in claims["hm-mini-5shot-5"]["missing"]
    report = (extended / "report.html").read_text()
    for cell in {cell for claim in claims.values() for cell in (*claim["cells"], *claim["missing"])}:
        assert f'id="cell-{cell}"' in report


def test_numbers_that_nobody_published_are_dashes(extended: Path) -> None:
    lines = tex_of(extended, "T2").splitlines()
    castle = next(place for place, line in enumerate(lines) if line.startswith("CASTLE"))
    assert lines[castle + 1 : castle + 3] == [
        r"\quad published & -- & -- & -- & -- & -- & -- \\",
        r"\quad difference & -- & -- & -- & -- & -- & -- \\",
    ]
    published = [line for line in tex_of(extended, "T3").splitlines() if "published" in line]
    assert published and all(set(line.split(" & ")[1:]) == {"--", r"-- \\"} for line in published)


def test_a_new_table_and_a_new_figure_are_one_entry_each(extended: Path) -> None:
    assert "CASTLE alone on mini" in tex_of(extended, "T21")
    assert (extended / "figures" / "F21_castle.pdf").is_file()
    assert "F21_castle" in (extended / "figures.tex").read_text()
    places = {number["place"] for number in json.loads((extended / "provenance.json").read_text())["numbers"]}
    assert {"T21/castle/1shot_hm", "F21"} <= places


def test_a_dataset_that_nothing_shows_changes_nothing(extended: Path, paper: Paper) -> None:
    for name in ("F1.svg", "F5_samples.png", "F10_dictionary.png", "F11_seen.png"):
        assert (extended / "figures" / name).read_bytes() == (paper.out / "figures" / name).read_bytes()
    assert "birds" not in (extended / "report.html").read_text()
    assert "birds" not in shown_datasets([MINE])


def test_rows_add_their_own_cells_to_the_needed_ones() -> None:
    plain, more = ({need.cell.name: need for need in required_cells(added)} for added in ((), (MINE, "castle")))
    names = {f"{dataset}-{MINE}-{shot}shot" for dataset in ("mini", "tiered") for shot in (1, 5)}
    assert more.keys() - plain.keys() == names
    assert more[f"mini-{MINE}-1shot"].needed_by == ("T2", "T3", "F6", "F7", "F8", "F9")


def test_a_row_without_any_cell_is_shown_as_dashes() -> None:
    tables, figures = with_rows([MINE])
    assert [table.key for table in tables if table.rows[-1].ours] == ["T2", "T3", "T4"]
    assert [figure.key for figure in figures if figure.lines[-1].ours] == ["F6", "F7", "F8", "F9"]


def test_a_known_method_may_stand_where_the_paper_left_it_out() -> None:
    tables, _ = with_rows(["ifsl"])
    ours = {table.key: [row.key for row in table.rows if row.ours] for table in tables if table.takes_rows}
    assert ours == {"T2": [], "T3": ["ifsl"], "T4": ["ifsl"]}


def test_a_method_in_a_table_of_ones_own_may_stand_in_the_papers_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's recipes do both; only a row that adds nothing anywhere is refused."""
    monkeypatch.setattr(rows, "TABLES", (*TABLES, replace(NEW_TABLE, rows=(Row(MINE, MINE),), takes_rows=False)))
    assert [name for name in (MINE, "ifsl", "castle_minus", "castle") if not rows.lacked(name)] == ["castle"]


def test_a_row_that_is_no_method_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"rows name 'mymethd', which is no method, expected some of acastle, "):
        render(tmp_path, tmp_path / "out", rows=["mymethd"])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda tables: tables.update(T99=tables["T2"]), "table T99 is in no layout"),
        (
            lambda tables: tables["T1a"]["rows"].update(castel=tables["T1a"]["rows"].pop("castle")),
            "T1a shows no row castel",
        ),
        (lambda tables: tables["T2"]["rows"]["castle"]["values"].update(hm=[1, 2]), "T2 shows no column hm"),
        (lambda tables: tables["T2"]["rows"]["castle"].pop("values"), "T2/castle: 'values'"),
        (lambda tables: tables["T2"].update(rows={}), "T2 names no row"),
    ],
)
def test_published_numbers_that_are_broken_or_misspelt_get_one_sentence(change, expected: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    tables = yaml.safe_load(PUBLISHED.read_text())
    change(tables)
    (tmp_path / "published.yaml").write_text(yaml.safe_dump(tables, sort_keys=False))
    with pytest.raises(BadInput, match=expected):
        render(tmp_path, tmp_path / "out", published=tmp_path / "published.yaml")


def test_a_method_without_a_card_has_its_name_and_looks_of_its_own() -> None:
    own = Look("#123456", "o", "-")
    cards = {"plain": MethodCard(), "other": MethodCard(), "dressed": MethodCard("Dressed", look=own)}
    methods = Methods(cards, ["other"])
    assert [methods.label(name) for name in cards] == ["plain", "other", "Dressed"]
    assert methods.look("dressed") == own
    assert methods.look("other") != methods.look("plain")
    assert methods.look("other") == Methods({"other": MethodCard()}, ["other"]).look("other")
    assert (methods.label("unheard_of"), methods.look("unheard_of").line) == ("unheard_of", "-")


def test_quoted_rows_without_a_published_number_are_dashes(tmp_path: Path) -> None:
    (table,) = [table for table in TABLES if table.key == "T5"]
    view: TableView = view_table(table, Results(tmp_path, {}), NOTHING_PUBLISHED, {}, BENCHMARK, KNOWN)
    assert {row.published_backbone for row in view.rows} == {DASH}
    assert all(place.published is None for row in view.rows for place in row.places)
