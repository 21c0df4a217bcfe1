"""A scale with one dataset: what is of the others stays dashes."""

from pathlib import Path

from tests.report.conftest import DATASETS, render
from tests.report.synthetic import noisy, write_cell


def test_tables_and_figures_of_datasets_that_a_scale_lacks_stay_dashes(tmp_path: Path) -> None:
    from repro.report.needs import required_cells

    for need in required_cells():
        if need.cell.dataset == "mini" and need.cell.method in ("castle", "protonet") and not need.cell.variant:
            write_cell(tmp_path / "cells", need.cell, [("gfsl", 5), ("fsl", 5)], noisy(), seed=0)
    rendered = render(tmp_path / "cells", tmp_path / "out", form="ours", datasets={"mini": DATASETS["mini"]})
    tables = (tmp_path / "out" / "tables.tex").read_text().split("\\begin{table")
    (tiered,) = [table for table in tables if "all all unseen classes" in table or "on tiered with" in table]
    rows = [line for line in tiered.splitlines() if "CASTLE &" in line]
    assert rows and all(set(line.split("&")[1:][0].replace("\\\\", "").strip()) <= {"–", "-"} for line in rows)
    assert (tmp_path / "out" / "figures" / "F5_samples.png").is_file()
    assert "tiered-castle-1shot" in rendered.missing and "mini-castle-1shot" not in rendered.missing
