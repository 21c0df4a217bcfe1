"""Runs as MLflow's file store lays them out: the files themselves, without MLflow."""

import json

import pytest
import yaml

from stages.tracking.files import append_scalars
from tests.tracking import toy
from tests.tracking.conftest import only_run, read
from tests.tracking.test_tools import tool
from tools.tracking.mlflow_files import STATE, export


def quietly(runs, target, everything=False):
    """Export without a word; give the lines that would have been shown."""
    said = []
    assert export(runs, target, everything, said.append) == []
    return said[:-1]


def only_export(target):
    """The one exported run."""
    (meta,) = target.glob("*/*/meta.yaml")
    return meta.parent


def tree(folder):
    """Every file and its content."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def runs(tmp_path):
    """A folder with one run, and a link to it by its output."""
    told = {"name": "castle", "lr/max": "a\nb"}
    toy.record_toy(tmp_path / "runs", seed=3, method=told, outputs={"weights": "0" * 64})
    return tmp_path / "runs"


def test_a_run_has_meta_parameters_metrics_tags_and_artifacts(tmp_path, runs):
    quietly(runs, tmp_path / "out")
    place, folder = only_export(tmp_path / "out"), only_run(runs)
    meta = yaml.safe_load((place / "meta.yaml").read_text())
    assert meta["status"] == 3 and meta["lifecycle_stage"] == "active" and meta["run_name"] == "mini-castle-1shot"
    assert meta["run_id"] == meta["run_uuid"] == place.name and meta["experiment_id"] == place.parent.name
    assert 0 <= meta["end_time"] - meta["start_time"] < 600_000
    assert meta["artifact_uri"] == (place / "artifacts").as_uri()
    experiment = yaml.safe_load((place.parent / "meta.yaml").read_text())
    assert experiment["name"] == "toy" and experiment["experiment_id"] == place.parent.name
    params = {file.name: file.read_text() for file in (place / "params").iterdir()}
    assert params["seed"] == "3" and params["method.name"] == "castle" and params["dataset"] == "mini"
    assert [value for name, value in params.items() if name.startswith("method.lr_max_")] == ['"a\\nb"']
    losses = [line.split() for line in (place / "metrics" / "loss").read_text().splitlines()]
    assert [(float(value), int(step)) for _, value, step in losses][:2] == [(13.0, 0), (6.5, 1)]
    assert all(meta["start_time"] <= int(time) <= meta["end_time"] for time, _, _ in losses)
    assert (place / "metrics" / "result.hm").read_text().split()[1:] == ["63.0", "0"]
    assert (place / "tags" / "castle.run").read_text() == folder.name
    assert (place / "tags" / "mlflow.source.name").read_text() == "tests/tracking/toy.py"
    assert (place / "artifacts" / "metrics.json").read_bytes() == (folder / "artifacts" / "metrics.json").read_bytes()
    assert "done with" in (place / "artifacts" / "cout.txt").read_text()


def test_exporting_again_changes_nothing_and_stages_are_experiments(tmp_path, runs):
    entry = read(only_run(runs))
    assert len(quietly(runs, tmp_path / "out")) == 1
    before = tree(tmp_path / "out")
    assert quietly(runs, tmp_path / "out") == [] and tree(tmp_path / "out") == before
    assert len(quietly(runs, tmp_path / "out", everything=True)) == 1 and tree(tmp_path / "out") == before
    (only_run(runs) / "run.json").write_text(
        json.dumps({**entry, "experiment": {**entry["experiment"], "name": "other"}})
    )
    quietly(runs, tmp_path / "out")
    names = {yaml.safe_load(meta.read_text())["name"] for meta in (tmp_path / "out").glob("*/meta.yaml")}
    assert names == {"toy", "other"}


def test_a_run_that_has_grown_is_written_anew_with_the_tags_that_were_added_there(tmp_path, runs):
    quietly(runs, tmp_path / "out")
    place = only_export(tmp_path / "out")
    (place / "tags" / "mine").write_text("good")
    append_scalars(only_run(runs), [("loss", 9, 0.5, "2026-01-01T00:00:00")])
    assert len(quietly(runs, tmp_path / "out")) == 1
    assert (place / "metrics" / "loss").read_text().endswith("1767225600000 0.5 9\n")
    assert (place / "tags" / "mine").read_text() == "good" and len((place / "tags" / STATE).read_text()) == 16


def test_a_run_that_was_deleted_there_stays_deleted(tmp_path, runs):
    quietly(runs, tmp_path / "out")
    meta = only_export(tmp_path / "out") / "meta.yaml"
    meta.write_text(meta.read_text().replace("lifecycle_stage: active", "lifecycle_stage: deleted"))
    append_scalars(only_run(runs), [("loss", 9, 0.5, "2026-01-01T00:00:00")])
    assert quietly(runs, tmp_path / "out") == [] and "deleted" in meta.read_text()
    assert len(quietly(runs, tmp_path / "out", everything=True)) == 1 and "active" in meta.read_text()


@pytest.mark.parametrize("name", ["../../outside", "/tmp/outside"])
def test_a_forged_record_reaches_no_file_outside(tmp_path, runs, name):
    entry = read(only_run(runs))
    (only_run(runs) / "run.json").write_text(json.dumps({**entry, "artifacts": [name]}))
    (problem,) = export(runs, tmp_path / "out", show=lambda _: None)
    assert "outside" in problem and list((tmp_path / "out").glob("*/*/meta.yaml")) == []


@pytest.mark.parametrize("name", ["..", "../x", "a/b", ".hidden", "x" * 300, "new\nline", "\x1b[31m"])
def test_names_of_scalars_stay_within_their_folder(tmp_path, runs, name):
    append_scalars(only_run(runs), [(name, 1, 0.5, "2026-01-01T00:00:00")])
    quietly(runs, tmp_path / "out")
    metrics = only_export(tmp_path / "out") / "metrics"
    assert len(list(metrics.iterdir())) == 6 and all(file.name.isprintable() for file in metrics.iterdir())


def test_the_tool_needs_no_server_and_names_what_is_no_record(tmp_path, runs):
    (runs / "20260101-000000-000-toy-x\x1b[31m-abcdef").mkdir()
    done = tool("sync", "--runs", runs, "--mlflow", tmp_path / "out")
    assert done.returncode == 1 and f"1 runs in {tmp_path / 'out'}" in done.stdout
    (said,) = done.stderr.splitlines()
    assert said.startswith("error: ") and "\\x1b[31m" in said
    assert "\x1b" not in done.stdout + done.stderr
