"""The store: right rows in task order, one read per column, and None for whatever was not measured."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from repro.errors import BadInput
from repro.files import seal
from repro.results.records import read_records, summarise, write_records
from repro.results.store import Cell, CellRecords, Reading, Results
from tests.report.synthetic import noisy, write_cell

CELL = Cell("mini", "castle", 1)
GROUPS = [("gfsl", 5), ("gfsl", 20), ("fsl", 5), ("seen", 64)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("results")
    write_cell(folder, CELL, GROUPS, noisy(tasks=32))
    return Results(folder, {"mini": 20})


def test_cells_are_named_as_in_the_parameters() -> None:
    assert Cell("mini", "castle", 1).name == "mini-castle-1shot"
    assert Cell("mini", "castle", 5, "postavg").name == "mini-castle-5shot-postavg"


def test_values_are_those_that_were_written(results: Results) -> None:
    for protocol, way, measure in (("gfsl", 5, "hm"), ("gfsl", 20, "cal_hm"), ("fsl", 5, "u_u")):
        sample = results.sample(Reading(CELL, protocol, way, measure))
        assert sample is not None
        np.testing.assert_allclose(sample.values, noisy(tasks=32)(CELL, protocol, way, measure), rtol=1e-6)


def test_estimates_agree_with_the_evaluations_own_summary(results: Results) -> None:
    summary = summarise(read_records(results.folder / CELL.name / "tasks.parquet"))
    for way in (5, 20):
        found = results.estimate(Reading(CELL, "gfsl", way, "hm"))
        assert found is not None
        assert {"mean": round(found.mean, 4), "ci": round(found.ci, 4)} == summary[f"gfsl_{way}way"]["hm"]


def test_all_ways_are_the_datasets_unseen_classes(results: Results) -> None:
    everything = results.estimate(Reading(CELL, "gfsl", "all", "hm"))
    assert everything == results.estimate(Reading(CELL, "gfsl", 20, "hm"))
    assert results.estimate(Reading(CELL, "seen", "any", "syn_s")) is not None


@pytest.mark.parametrize(
    "reading",
    [
        Reading(Cell("mini", "dfsl", 1), "gfsl", 5, "hm"),
        Reading(CELL, "gfsl", 10, "hm"),
        Reading(CELL, "fsl", 5, "hm"),
        Reading(CELL, "gfsl", 5, "no_such_measure"),
        Reading(CELL, "gfsl", "any", "hm"),
        Reading(Cell("office", "castle", 1), "gfsl", "all", "hm"),
    ],
    ids=["cell", "way", "measure of another protocol", "measure", "several ways", "unknown dataset"],
)
def test_what_was_not_measured_reads_as_none(results: Results, reading: Reading) -> None:
    assert results.sample(reading) is None
    assert results.estimate(reading) is None


def test_gfsl_and_fsl_of_one_task_list_can_be_paired(results: Results) -> None:
    joint, alone = (results.sample(Reading(CELL, protocol, 5, "u_u")) for protocol in ("gfsl", "fsl"))
    other = results.sample(Reading(CELL, "gfsl", 20, "u_u"))
    assert joint and alone and other
    assert joint.tasks == alone.tasks != other.tasks


def test_records_of_another_task_list_are_refused(tmp_path: Path) -> None:
    write_cell(tmp_path, CELL, GROUPS, noisy(tasks=32))
    foreign, silent = Cell("mini", "dfsl", 1), Cell("mini", "protonet", 1)
    lists = read_records(tmp_path / CELL.name / "tasks.parquet").metadata["tasks"]
    for cell, named in ((foreign, lists | {"gfsl_5way": "ffff", "seen_64way": "ffff"}), (silent, {})):
        write_cell(tmp_path, cell, GROUPS, noisy(tasks=32))
        file = tmp_path / cell.name / "tasks.parquet"
        rows = read_records(file)
        write_records(file, rows.columns, {**rows.metadata, "tasks": named})
        seal(file.parent, file.name)
    results = Results(tmp_path, {"mini": 20})
    for reading in (Reading(CELL, "gfsl", 5, "hm"), Reading(CELL, "seen", "any", "syn_s")):
        assert results.sample(reading) is not None
        with pytest.raises(BadInput, match=r"task list ffff, mini-castle-1shot on \S+; expected one list for all"):
            results.sample(replace(reading, cell=foreign))
        with pytest.raises(BadInput, match="measured on task list nothing, mini-castle-1shot on"):
            results.sample(replace(reading, cell=silent))
    assert results.sample(Reading(foreign, "gfsl", 20, "hm")) is not None


def test_curves_are_read_where_they_are(results: Results) -> None:
    curve = results.curve(CELL, "all")
    assert curve is not None
    unseen, seen = curve
    assert (unseen[0], seen[0], unseen[-1], seen[-1]) == (0, 100, 100, 0)
    assert results.curve(CELL, 10) is None
    assert results.curve(Cell("mini", "dfsl", 1), 5) is None


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tasks.parquet").write_text("nothing")
    with pytest.raises(BadInput, match="not a file of per-task records"):
        CellRecords(tmp_path)
