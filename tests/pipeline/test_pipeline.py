"""The real pipeline on a small grid: what runs, what does not run again, and that equal runs give equal bytes."""

import re
import shlex
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

from repro import paths
from stages.tracking import run_folders
from stages.tracking.frames import scalars
from tests.pipeline.workspace import ROOT, call, digests, executed, make_workspace
from tests.tracking import curves

pytestmark = pytest.mark.timeout(1200)


def test_everything_runs_once_and_leaves_what_it_promises(workspace: tuple[Path, list[str]]) -> None:
    folder, ran = workspace
    assert len(ran) == len(set(ran)) == 1 + 4 + 4 + 4 + 4 + 1 + 4 + 4 + 1 + 1 + 3 + 1
    for dataset in ("mini", "tiered", "heterogeneous", "office"):
        assert (folder / "data" / dataset / "0" / "contact_sheet.png").is_file()
    for name in ("tables.tex", "figures.tex", "claims.json", "report.html", "provenance.json"):
        assert (folder / "paper" / name).stat().st_size > 500, name
    runs = run_folders(folder / "runs")
    assert len(runs) == len(ran)
    for run in runs:
        said = [line for line in (run / "cout.txt").read_text().splitlines() if not line.startswith("warning: ")]
        assert 1 <= len(said) <= 3, f"{run.name}: its result in a line or two"
    logged = scalars(folder / "runs").groupby("run").name.agg(set)
    for stage, series in {"evaluate": {*curves.MEASURES}, "train": {"loss", "val_hm"}}.items():
        of_stage = logged[logged.index.str.contains(f"-{stage}-")]
        assert len(of_stage) and all(series <= names for names in of_stage), f"{stage} logs what dashboards draw"


def test_a_method_from_random_weights_gets_the_steps_and_the_rate_of_both_trainings(
    workspace: tuple[Path, list[str]],
) -> None:
    models = workspace[0] / "models"
    assert not (models / "pretrained" / "mini-random" / "0" / "curve.csv").exists()
    pretrained = pd.read_csv(models / "pretrained" / "mini-standard" / "0" / "curve.csv")
    tuned, scratch = (
        pd.read_csv(models / "cells" / f"mini-castle-1shot{variant}" / "0" / "curve.csv")
        for variant in ("", "-scratch")
    )
    assert len(scratch) == len(pretrained) + len(tuned)
    assert scratch["lr"].max() > 5 * tuned["lr"].max()
    assert scratch["val_hm"].count() == tuned["val_hm"].count()


def test_a_second_repro_runs_nothing(workspace: tuple[Path, list[str]]) -> None:
    folder, _ = workspace
    assert executed(call(folder, "dvc", "repro")) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "stages"),
    [
        # The paper shows the card that stands in the method's file.
        ("repro/methods/protonet.py", '"lr": 0.01', '"lr": 0.02', r"(train|.*:evaluate)@mini-protonet-1shot|paper"),
        ("repro/training/optim.py", "nesterov: bool = False", "nesterov: bool = True", "(pretrain|train).*"),
        ("repro/evaluation/calibration.py", "", "\n# edited\n", "(train|.*evaluate).*"),
    ],
)
def test_dvc_calls_stale_what_an_edit_of_the_code_concerns(
    file: str, old: str, new: str, stages: str, workspace: tuple[Path, list[str]]
) -> None:
    folder, ran = workspace
    before = (folder / file).read_text()
    (folder / file).write_text(before.replace(old, new) if old else before + new)
    try:
        call(folder, "dvc", "repro", "plan")
        stale = set(yaml.safe_load(call(folder, "dvc", "status", "--json").stdout))
    finally:
        (folder / file).write_text(before)
        call(folder, "dvc", "repro", "plan")
    assert stale == {stage for stage in ran if re.fullmatch(stages, stage)} != set()


def test_one_parameter_of_the_experiment_re_runs_the_experiment_only(workspace: tuple[Path, list[str]]) -> None:
    folder, _ = workspace
    done = call(folder, "dvc", "exp", "run", "--set-param", "shot=5", "--name", "five")
    assert executed(done) == ["plan", "train_experiment", "evaluate_experiment", "summary_experiment"]
    shown = call(folder, "dvc", "exp", "show", "--csv").stdout
    columns = {name.rpartition(":")[2] for name in shown.splitlines()[0].split(",")}
    assert "five" in shown and {"hm", "acc", "delta", "ausuc"} <= columns and "hm_5way" not in columns
    (documented,) = re.findall("^dvc exp show [^;]*", (ROOT / "README.md").read_text(), re.MULTILINE)
    table = call(folder, "env", "COLUMNS=80", *shlex.split(documented)).stdout
    assert "[five]" in table and "shot" in table and "…" not in table, "what differs fits a terminal"
    difference = call(folder, "dvc", "metrics", "diff", "--json").stdout
    assert "ausuc" in difference
    call(folder, "git", "checkout", "--quiet", "--", ".")
    call(folder, "dvc", "checkout", "--quiet")


def test_a_queued_experiment_runs_and_is_recorded_in_the_main_runs_folder(workspace: tuple[Path, list[str]]) -> None:
    folder, _ = workspace
    before = len(run_folders(folder / "runs"))
    call(folder, "dvc", "exp", "run", "--queue", "--set-param", "method=protonet", "--name", "queued")
    call(folder, "dvc", "exp", "run", "--run-all")
    assert "queued" in call(folder, "dvc", "exp", "show", "--csv").stdout
    assert len(run_folders(folder / "runs")) == before + 4


def test_equal_parameters_and_seed_give_equal_bytes(
    workspace: tuple[Path, list[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    first, _ = workspace
    second = make_workspace(tmp_path_factory.mktemp("again"))
    stages = ("evaluate@mini-castle-1shot", "evaluate_adapted")
    call(second, "dvc", "repro", *(f"{paths.EVALUATIONS}:{stage}" for stage in stages))
    ours, theirs = digests(first), digests(second)
    assert len(theirs) > 20
    assert {name: digest for name, digest in ours.items() if name in theirs} == theirs


def test_a_scale_and_back_leaves_a_clean_tree_and_nothing_to_run(
    workspace: tuple[Path, list[str]], tmp_path: Path
) -> None:
    folder = tmp_path / "scaled"
    shutil.copytree(workspace[0], folder, symlinks=True)
    (folder / "tools" / "scales").mkdir(parents=True)
    (folder / "tools" / "scales" / "other.yaml").write_text("episodes: {calibration: 25}\n")
    call(folder, "git", "add", "--all")
    call(folder, "git", "commit", "--quiet", "--message", "a scale")
    apply = "import sys; from stages.settings import scales; scales.apply(sys.argv[1])"
    call(folder, sys.executable, "-c", apply, "other")
    assert executed(call(folder, "dvc", "repro", "episodes@mini")) == ["plan", "episodes@mini"]
    call(folder, sys.executable, "-c", apply, "embedded")
    assert call(folder, "git", "status", "--porcelain").stdout == ""
    assert executed(call(folder, "dvc", "repro")) == []
    assert call(folder, "git", "status", "--porcelain").stdout == ""
