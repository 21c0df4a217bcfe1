"""The layout names every published number once, and the cells behind them."""

from pathlib import Path

import pytest

from repro.report.layout import TABLES, Table
from repro.report.needs import required_cells
from repro.report.printed import TEXT
from repro.results.published import read_published
from repro.results.store import Cell
from tests.report.conftest import KNOWN

PUBLISHED = read_published(Path(__file__).parents[2] / "paper" / "published.yaml")


def test_tables_come_in_the_papers_order() -> None:
    assert [*(table.key for table in TABLES if table.key in PUBLISHED), TEXT] == list(PUBLISHED)


@pytest.mark.parametrize("table", [table for table in TABLES if table.key in PUBLISHED], ids=lambda table: table.key)
def test_rows_and_columns_are_the_papers(table: Table) -> None:
    printed = PUBLISHED[table.key]
    assert [row.key for row in table.rows] == list(printed.rows)
    columns = list(dict.fromkeys(column for row in printed.rows.values() for column in row.numbers))
    assert sorted(column.key for column in table.columns if not column.ours) == sorted(columns)
    assert {row.key: row.cited for row in table.rows} == {key: row.kind == "cited" for key, row in printed.rows.items()}
    assert table.backbones == any(row.backbone for row in printed.rows.values())


def test_headers_have_one_level_per_corner() -> None:
    for table in TABLES:
        assert {len(column.headers) for column in table.columns} == {len(table.corner)}, table.key


def test_the_needed_cells_are_known_by_name() -> None:
    own = {table.key for table in TABLES} - PUBLISHED.keys()
    needs = {need.cell.name: need for need in required_cells() if not own.issuperset(need.needed_by)}
    assert len(needs) == 58
    main = needs["mini-castle-1shot"]
    assert {("gfsl", 5), ("gfsl", 20), ("fsl", 5), ("fsl", "all"), ("seen", "any")} <= main.protocols
    assert {"T2", "T3", "T7", "F6", "F10"} <= set(main.needed_by)
    for name in (
        "mini-castle-5shot-postavg",
        "mini-castle-1shot-scratch",
        "mini-castle-1shot-classifiers256",
        "mini-castle-1shot-ratio0",
        "mini-upper_bound-5shot",
        "office-castle_minus-1shot",
    ):
        assert name in needs


def test_every_variant_that_is_needed_has_words_and_another_is_named_as_it_is() -> None:
    needed = {need.cell for need in required_cells() if need.cell.variant}
    titles = {KNOWN.title(cell) for cell in needed}
    assert len(titles) == len(needed) > 10 and not any("(" in title for title in titles)
    assert "CASTLE without a dictionary, mini, 1-shot" in titles
    assert "CASTLE with 1 shared base per seen class, mini, 1-shot" in titles
    assert "CASTLE with 64 classifiers per step, mini, 1-shot" in titles
    assert KNOWN.named(Cell("mini", "castle", 1, "slow")) == "CASTLE (slow)"
