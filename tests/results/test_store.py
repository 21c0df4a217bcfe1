"""The store: right rows in task order, one read per column, and None for whatever was not measured."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from repro.errors import BadInput
from repro.files import seal
from repro.results.records import read_records, summarise, write_json, write_records
from repro.results.store import Cell, Reading, Results
from tests.report.synthetic import Values, noisy, write_cell
from tests.results.worlds import draw_contents

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
        values = noisy(tasks=32)(CELL, protocol, way, measure)
        np.testing.assert_allclose(sample.seeds[0].values, values, rtol=1e-6)


def test_estimates_agree_with_the_evaluations_own_summary(results: Results) -> None:
    summary = summarise(read_records(results.folder / CELL.name / "0" / "tasks.parquet"))
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
    assert joint.seeds[0].tasks == alone.seeds[0].tasks != other.seeds[0].tasks


def test_a_cell_is_read_seed_by_seed_and_its_mean_is_that_of_the_seeds(tmp_path: Path) -> None:
    def shifted(by: float) -> Values:
        return lambda cell, protocol, way, measure: noisy(tasks=32)(cell, protocol, way, measure) + by

    for seed in (0, 2, 11):
        write_cell(tmp_path, CELL, GROUPS, shifted(seed), seed=seed)
    (tmp_path / CELL.name / "notes").mkdir()
    results, reading = Results(tmp_path, {"mini": 20}), Reading(CELL, "gfsl", 5, "acc")
    sample, found = results.sample(reading), results.estimate(reading)
    assert sample is not None and list(sample.seeds) == [0, 2, 11] and found is not None
    base = noisy(tasks=32)(CELL, "gfsl", 5, "acc").mean()
    assert found.seeds == pytest.approx((base, base + 2, base + 11), abs=1e-4)
    assert found.mean == pytest.approx(np.mean(found.seeds)) and found.tasks == 96
    low, high = stats.t.interval(0.95, 2, loc=found.mean, scale=stats.sem(found.seeds))
    assert found.wide == pytest.approx((high - low) / 2)
    everything = np.concatenate([replicate.values for replicate in sample.seeds.values()])
    assert found.ci == pytest.approx(1.96 * everything.std() / 96**0.5)


def test_seeds_follow_lists_of_their_own(tmp_path: Path) -> None:
    for seed in (0, 1):
        write_cell(tmp_path, CELL, GROUPS, noisy(tasks=32), seed=seed)
    sample = Results(tmp_path, {"mini": 20}).sample(Reading(CELL, "gfsl", 5, "hm"))
    assert sample is not None
    assert sample.seeds[0].tasks != sample.seeds[1].tasks


def test_contents_are_asked_for_by_the_digest_and_cut_to_the_tasks_measured(tmp_path: Path) -> None:
    write_cell(tmp_path, CELL, GROUPS, noisy(tasks=32), seed=4)
    lists = {"list-mini-1-5-4": draw_contents(np.random.default_rng(0), 50, 5)}
    results = Results(tmp_path, {"mini": 20}, lists.get)
    sample = results.sample(Reading(CELL, "gfsl", 5, "hm"))
    assert sample is not None
    contents = sample.seeds[4].contents
    assert contents is not None and contents.tasks == 32
    found, unknown = (results.estimate(Reading(CELL, "gfsl", way, "hm")) for way in (5, 20))
    assert found is not None and found.error is not None and found.wide > found.ci
    assert unknown is not None and unknown.error is None and np.isnan(unknown.wide)


def test_the_curve_is_the_mean_of_the_seeds(tmp_path: Path) -> None:
    for seed in (0, 1):
        write_cell(tmp_path, CELL, GROUPS, noisy(tasks=32), seed=seed)
    file = tmp_path / CELL.name / "1" / "curve.json"
    write_json(file, {"gfsl_5way": [[unseen, 0.0] for unseen in np.linspace(0, 100, 21)]})
    seal(file.parent, file.name)
    curve = Results(tmp_path, {}).curve(CELL, 5)
    assert curve is not None
    assert (curve[0][0], curve[1][0], curve[1][-1]) == (0, 50, 0)


def test_records_of_another_task_list_are_refused(tmp_path: Path) -> None:
    write_cell(tmp_path, CELL, GROUPS, noisy(tasks=32))
    foreign, silent = Cell("mini", "dfsl", 1), Cell("mini", "protonet", 1)
    lists = read_records(tmp_path / CELL.name / "0" / "tasks.parquet").metadata["tasks"]
    for cell, named in ((foreign, lists | {"gfsl_5way": "ffff", "seen_64way": "ffff"}), (silent, {})):
        write_cell(tmp_path, cell, GROUPS, noisy(tasks=32))
        file = tmp_path / cell.name / "0" / "tasks.parquet"
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


def test_a_summary_holds_both_intervals_where_the_task_list_is_known(tmp_path: Path) -> None:
    write_cell(tmp_path, CELL, GROUPS, noisy(tasks=32))
    records = read_records(tmp_path / CELL.name / "0" / "tasks.parquet")
    lists = {"list-mini-1-5-0": draw_contents(np.random.default_rng(0), 50, 5)}
    known, unknown = (summarise(records, lists.get)[group]["hm"] for group in ("gfsl_5way", "gfsl_20way"))
    found = Results(tmp_path, {"mini": 20}, lists.get).estimate(Reading(CELL, "gfsl", 5, "hm"))
    assert found is not None
    assert known == {"mean": round(found.mean, 4), "ci": round(found.ci, 4), "ci_images": round(found.wide, 4)}
    assert set(unknown) == {"mean", "ci"}
