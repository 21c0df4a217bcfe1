"""What the report says of trainings: their budgets, and which of them ended below the untrained floor."""

from pathlib import Path

import numpy as np

from repro.report.floor import floor_warnings
from repro.results.store import Cell, Results
from repro.results.tuning import Budget, PretrainingBudget, Rung, TrialOutcome, Tuning
from tests.report.conftest import KNOWN, render
from tests.report.synthetic import write_cell

LEVELS = {"castle": 60.0, "dfsl": 20.0, "mc_knn": 10.0, "nearest_mean": 30.0}


def test_a_trained_method_below_the_untrained_floor_is_a_warning(tmp_path: Path) -> None:
    cells = [Cell("mini", name, 1) for name in LEVELS]
    for cell in cells:
        write_cell(tmp_path, cell, [("gfsl", 5)], lambda cell, *_: np.full(8, LEVELS[cell.method]), seed=0)
    found = list(floor_warnings(Results(tmp_path, {"mini": 20}), cells, ["castle", "dfsl"], KNOWN))
    assert found == ["DFSL on mini, 1-shot: AUSUC under the untrained floor's, 20.00 below 30.00 at 5 ways"]


def test_budgets_are_shown_where_some_were_chosen(tmp_path: Path) -> None:
    outcomes = (TrialOutcome(hm=50.0, cal_hm=50.0, ausuc=40.0),)
    rungs = (Rung(steps=500, outcomes=outcomes), Rung(steps=1000, outcomes=outcomes))
    place = {"dataset": "mini", "method": "castle", "shot": 1}
    budget = Budget(**place, options={}, training={}, plateau=0.5, seeds=(0,), rungs=rungs)  # type: ignore[arg-type]
    longer = (rungs[0], Rung(steps=1000, outcomes=(TrialOutcome(hm=50.0, cal_hm=50.0, ausuc=41.0),)))
    before = PretrainingBudget(dataset="mini", method="mc_knn", plateau=0.5, seeds=(0,), rungs=longer)
    render(tmp_path / "none", tmp_path / "out", tuning=Tuning(pretraining=(before,), budgets=(budget,)))
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Training budgets" in page and "500: 40.00, 1000: 40.00" in page
    assert "pre-training, as MC + kNN" in page and "1000 epochs, no plateau yet" in page
    assert (tmp_path / "out" / "figures" / "budgets.png").is_file()
