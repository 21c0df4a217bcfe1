"""Classes and images of a dataset as the report shows them, from counts that we choose."""

from pathlib import Path

from repro.report.class_views import view_datasets
from repro.results.store import Cell, Results
from tests.report.conftest import DATASETS, KNOWN
from tests.report.synthetic import UNSEEN, contents_of, noisy, write_cell

CELLS = [Cell("mini", "castle", 1), Cell("mini", "acastle", 1), Cell("mini", "acastle", 5)]


def test_a_dataset_shows_what_is_hard_confused_and_never_right(tmp_path: Path) -> None:
    for cell in CELLS:
        write_cell(tmp_path, cell, [("gfsl", 5), ("gfsl", 20)], noisy(tasks=10))
    results = Results(tmp_path, UNSEEN, contents_of)
    (view,) = view_datasets(results, CELLS, DATASETS, KNOWN, way=5)
    assert (view.shot, view.way, view.methods) == (1, 5, ("CASTLE", "aCASTLE"))
    hardest = view.hardest[0]
    assert (hardest.name, hardest.kind, hardest.mean) == ("mini class 0", "seen", "0.00")
    assert {each.kind for each in view.hardest} == {"seen", "unseen"}
    worst = view.pairs[0]  # whenever it was asked for, and the other one was there to choose
    assert (worst.truth, worst.taken_for, worst.share) == ("mini class 0", "mini class 99", "100.00")
    assert [(name, asked) for _, name, asked in view.never_right] == [("mini class 0", 200)] * 2
    assert view.shares["CASTLE"][0] == 0 and len(view.shares["CASTLE"]) == len(view.classes) == 64 + 20
    assert all(each.picture.startswith("data:image/png;base64,") for each in view.hardest)


def test_without_the_chosen_way_the_smallest_is_shown_and_without_counts_nothing(tmp_path: Path) -> None:
    write_cell(tmp_path, CELLS[0], [("gfsl", 20)], noisy(tasks=10))
    results = Results(tmp_path, UNSEEN)
    (view,) = view_datasets(results, CELLS, DATASETS, KNOWN, way=5)
    assert view.way == 20 and view.pairs == ()
    for file in ("images.parquet", "confusions.parquet"):
        (tmp_path / CELLS[0].name / "0" / file).unlink()
    assert view_datasets(results, CELLS, DATASETS, KNOWN, way=5) == []
