"""The real pipeline on a small grid: what runs, what does not run again, and that equal runs give equal bytes."""

import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

from tests.pipeline.small_params import small_params
from tests.pipeline.workspace import ROOT, call, digests, executed, make_workspace

pytestmark = pytest.mark.timeout(1200)


def test_everything_runs_once_and_leaves_what_it_promises(workspace: tuple[Path, list[str]]) -> None:
    folder, ran = workspace
    assert len(ran) == len(set(ran)) == 4 + 4 + 2 + 4 + 4 + 4 + 1 + 1 + 2 + 1
    for dataset in ("mini", "tiered", "heterogeneous", "office"):
        assert (folder / "data" / dataset / "contact_sheet.png").is_file()
    for name in ("tables.tex", "figures.tex", "claims.json", "report.html", "provenance.json"):
        assert (folder / "paper" / name).stat().st_size > 500, name
    runs = [run for run in (folder / "runs").iterdir() if not run.name.startswith("_")]
    assert len(runs) == len(ran)


def test_a_method_from_random_weights_gets_the_steps_and_the_rate_of_both_trainings(
    workspace: tuple[Path, list[str]],
) -> None:
    models = workspace[0] / "models"
    assert not (models / "pretrained" / "mini-random" / "curve.csv").exists()
    pretrained = pd.read_csv(models / "pretrained" / "mini-linear" / "curve.csv")
    tuned, scratch = (
        pd.read_csv(models / "cells" / f"mini-castle-1shot{variant}" / "curve.csv") for variant in ("", "-scratch")
    )
    assert len(scratch) == len(pretrained) + len(tuned)
    assert scratch["lr"].max() > 10 * tuned["lr"].max()
    assert scratch["val_hm"].count() == tuned["val_hm"].count()


def test_a_second_repro_runs_nothing(workspace: tuple[Path, list[str]]) -> None:
    folder, _ = workspace
    assert executed(call(folder, "dvc", "repro")) == []


def test_an_edited_method_re_runs_its_own_cells_and_the_paper(workspace: tuple[Path, list[str]]) -> None:
    folder, _ = workspace
    file = folder / "repro" / "methods" / "protonet.py"
    before = file.read_text()
    file.write_text(before + "\n# edited\n")
    try:
        stale = set(yaml.safe_load(call(folder, "dvc", "status", "--json").stdout))
    finally:
        file.write_text(before)
    # The results turn out the same, so the paper itself does not run again.
    assert stale == {"train@mini-protonet-1shot", "evaluate@mini-protonet-1shot"}


def test_one_parameter_of_the_experiment_re_runs_the_experiment_only(workspace: tuple[Path, list[str]]) -> None:
    folder, _ = workspace
    done = call(folder, "dvc", "exp", "run", "--set-param", "shot=5", "--name", "five")
    assert executed(done) == ["train_experiment", "evaluate_experiment"]
    shown = call(folder, "dvc", "exp", "show", "--csv").stdout
    assert "five" in shown and "gfsl_5way.hm.mean" in shown
    difference = call(folder, "dvc", "metrics", "diff", "--json").stdout
    assert "gfsl_5way" in difference
    call(folder, "git", "checkout", "--quiet", "--", ".")
    call(folder, "dvc", "checkout", "--quiet")


def test_a_queued_experiment_runs_and_is_recorded_in_the_main_runs_folder(workspace: tuple[Path, list[str]]) -> None:
    folder, _ = workspace
    before = len(list((folder / "runs").iterdir()))
    call(folder, "dvc", "exp", "run", "--queue", "--set-param", "method=protonet", "--name", "queued")
    call(folder, "dvc", "exp", "run", "--run-all")
    assert "queued" in call(folder, "dvc", "exp", "show", "--csv").stdout
    assert len(list((folder / "runs").iterdir())) == before + 2


def test_equal_parameters_and_seed_give_equal_bytes(
    workspace: tuple[Path, list[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    first, _ = workspace
    second = make_workspace(tmp_path_factory.mktemp("again"))
    call(second, "dvc", "repro", "evaluate@mini-castle-1shot", "evaluate_adapted")
    ours, theirs = digests(first), digests(second)
    assert len(theirs) > 20
    assert {name: digest for name, digest in ours.items() if name in theirs} == theirs


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"sed": 1}, "unknown key sed"),
        ({"shot": "five"}, "shot is 'five', expected"),
        ({"shot": -1}, "shot is -1, expected"),
        ({"method": "nothing"}, "method is 'nothing', expected one of "),
        ({"dataset": "nothing"}, "dataset is 'nothing', expected one of "),
        ({"way": 7}, "way is 7, mini has stored tasks of 5 ways"),
        ({"seed": None}, "seed is None, expected"),
    ],
)
def test_wrong_parameters_are_answered_in_one_sentence(
    change: dict[str, object], expected: str, tmp_path: Path
) -> None:
    params = small_params() | change
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    for name in ("repro", "stages", "requirements.lock"):
        (tmp_path / name).symlink_to(ROOT / name)
    done = call(tmp_path, sys.executable, "-m", "stages", "evaluate", "experiment", check=False)
    assert done.returncode == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
