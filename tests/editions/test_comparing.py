"""tools/compare and tools/doctor --edition: a difference is found where it is, and nowhere else."""

import json
import re
from math import nan
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from repro.editions.differences import Difference
from repro.editions.edition import Edition
from repro.errors import BadInput
from repro.report.measures import as_csv, view_measures
from repro.results.comparisons import fsl, gfsl
from repro.results.records import RECORDS, TASKS, read_records
from repro.results.store import Cell
from tests.editions.conftest import NAME
from tools.editions.comparing import compare, summary, workspace, write_html, write_json
from tools.editions.diagnosis import check_edition

pytestmark = pytest.mark.timeout(1200)
PLANTED = "mini-castle-1shot"


def by_task(folder: Path, planted: float) -> pd.DataFrame:
    """Everything that was measured, as somebody else would send it; the HM of one cell higher by `planted`."""
    frames = []
    for file in sorted(folder.glob(f"*/*/{RECORDS}")):
        records = read_records(file)
        frame = pd.DataFrame(records.columns).assign(cell=file.parts[-3], seed=int(file.parts[-2]))
        groups = frame["protocol"] + "_" + frame["way"].astype(str) + "way"
        frames.append(frame.assign(tasks=groups.map(records.metadata[TASKS])))
    table = pd.concat(frames, ignore_index=True)
    table.loc[(table["cell"] == PLANTED) & (table["protocol"] == "gfsl"), "hm"] += np.float32(planted)
    return table


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_one_point_in_one_cell_is_found_and_nothing_else(beside: Path, tmp_path: Path, suffix: str) -> None:
    table, file = by_task(beside / "results" / "cells", 1.0), tmp_path / f"theirs.{suffix}"
    table.to_csv(file, index=False) if suffix == "csv" else table.to_parquet(file)
    found = compare(NAME, str(file))
    (planted,) = [each for each in found if each.verdict == "different"]
    assert (planted.reading.cell.name, planted.reading.measure, planted.paired) == (PLANTED, "hm", True)
    assert planted.difference == pytest.approx(-1, abs=1e-4)
    compared = [each for each in found if each.verdict != "cannot say"]
    assert len(compared) > 60 and sum(each.paired for each in compared) > 50


def test_an_edition_equals_the_workspace_that_it_was_kept_of(beside: Path, tmp_path: Path) -> None:
    found = compare("workspace", NAME)
    assert {each.verdict for each in found} == {"equal"}
    write_json(tmp_path / "all.json", found)
    write_html(tmp_path / "all.html", found, "workspace", NAME)
    assert json.loads((tmp_path / "all.json").read_text())["summary"] == summary(found)
    assert PLANTED in (tmp_path / "all.html").read_text()


def test_the_page_begins_with_what_differs_and_speaks_in_words(tmp_path: Path) -> None:
    varied, plain = Cell("mini", "castle", 1, "postavg"), Cell("mini", "castle", 1)
    seeds, unknown = "5 seeds", "neither side has an interval"
    found = [
        Difference(gfsl(plain, 5, "hm"), 60, 1, 60, 1, 0, 1, True, "equal", seeds),
        Difference(gfsl(plain, 5, "acc"), 60, 1, 58, nan, 2, 1, False, "different", seeds),
        Difference(gfsl(plain, 5, "ausuc"), 60, nan, 50, nan, 10, nan, False, "cannot say", unknown),
        Difference(gfsl(plain, 5, "delta"), 60, 1, nan, nan, nan, nan, False, "cannot say", "<b> does not have it"),
        Difference(fsl(varied, 20), 55, 1, 60, 1, -5, 1, True, "different", "5 seeds; tasks"),
    ]
    write_html(tmp_path / "page.html", found, "small", "<b>")
    text = (tmp_path / "page.html").read_text()
    assert "small and &lt;b&gt;, side by side" in text and "<b> does" not in text
    rows = [re.sub("<[^>]*>", "|", line) for line in text.splitlines() if line.startswith("<tr>")]
    heads = [row.strip("|") for row in rows if row.count("|") < 5]
    assert heads == ["Different: 2", "Cannot say: 2", "Equal: 1"] and "CASTLE, mini" in rows[2] and len(rows) == 8
    assert re.sub(r"\|+", "|", rows[1]) == (
        "|CASTLE with Post-AVG, mini, 1-shot|20|unseen|U→U|55.00| ± 1.00|60.00| ± 1.00|−5.00| ± 1.00|different"
        "|task by task; the interval covers 5 seeds, and of the other side tasks|"
    )
    assert "mean against mean; neither side has an interval" in rows[4] and "–|" in rows[5]


def test_the_papers_numbers_and_means_without_tasks_are_compared_by_their_intervals(
    beside: Path, tmp_path: Path
) -> None:
    (castle,) = [
        each
        for each in compare(NAME, "published")
        if each.reading.cell.name == PLANTED and each.reading.way == 5 and each.reading.measure == "acc"
    ]
    assert castle.second > 60 and castle.verdict == "different" and not castle.paired
    far, near = tmp_path / "far.csv", tmp_path / "near.csv"
    for file, mean in ((far, castle.first + 50), (near, castle.first + 0.01)):
        file.write_text(f"cell,way,measure,mean\n{PLANTED},5,acc,{mean}\n")
    for file, verdict in ((far, "different"), (near, "equal within noise")):
        (only,) = [each for each in compare(NAME, str(file)) if each.verdict != "cannot say"]
        assert only.verdict == verdict


def test_a_side_without_numbers_is_no_agreement(clone: Path) -> None:
    for second in (NAME, "published"):
        with pytest.raises(BadInput, match="workspace has no number to compare, expected some; run `tools/repro`"):
            compare("workspace", second)


def test_the_measures_that_a_report_offers_can_be_compared_with_the_records(beside: Path, tmp_path: Path) -> None:
    file, mine = tmp_path / "measures.csv", workspace()
    file.write_text(as_csv(view_measures(mine.results, mine.cells)))
    found = compare("workspace", str(file))
    assert {each.verdict for each in found} <= {"equal", "equal within noise"} and len(found) > 60


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "has the columns a, b.*, expected columns cell, way, measure, mean"),
        ("cell,way,measure,mean\nmoon,5,hm,1\n", "names the cell moon, expected those of paper/grid.yaml"),
        (f"cell,way,measure,mean\n{PLANTED},5,hm,high\n", "mean is high, expected percent from -100 to 100"),
        (f"cell,way,measure,mean\n{PLANTED},5,luck,1\n", "measure is 'luck', expected one of acc"),
        ("", "not a table"),
    ],
)
def test_other_tables_are_refused_in_a_sentence(beside: Path, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "theirs.csv"
    file.write_text(text)
    with pytest.raises(BadInput, match=said):
        compare(NAME, str(file))
    with pytest.raises(BadInput, match="side is 'moon', expected workspace, published, small"):
        compare("moon", NAME)


def test_the_doctor_says_that_the_tree_would_give_the_edition_and_did(
    beside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_edition(beside, NAME) == 0
    said = capsys.readouterr().out
    assert "settings: equal" in said and "data mini, seed 0: equal" in said
    assert f"{PLANTED}: equal, bit by bit" in said and "would reproduce it; 6 cells were compared" in said


def test_the_doctor_names_what_differs_in_a_clone(
    edition: Edition, clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params = clone / "params.yaml"
    params.write_text(params.read_text().replace("shot: 1", "shot: 5", 1))
    method = clone / "repro" / "methods" / "protonet.py"
    method.write_text(method.read_text() + "\n# edited\n")
    assert check_edition(clone, NAME) == 1
    said = capsys.readouterr().out
    assert "settings: differ in 1 place\n  shot: 1 → 5" in said
    assert "train: mini-protonet-1shot" in said and "to be made by `dvc repro splits@mini`" in said
    assert "would not reproduce it; nothing of it has been run here" in said
