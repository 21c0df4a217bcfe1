"""What DVC shows and changes by itself: one line of params.yaml, four headline numbers, no zeros for empty places."""

from difflib import ndiff
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from dvc.utils.serialize import modify_yaml

from stages import summary

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("name", "value"), [("shot", 5), ("way", 20), ("method", "acastle"), ("dataset", "tiered")])
def test_dvc_changes_one_line_of_the_parameters(tmp_path: Path, name: str, value: Any) -> None:
    """`-S` has DVC write the whole file anew: it must stand in the form that DVC writes."""
    before = (ROOT / "params.yaml").read_text()
    file = tmp_path / "params.yaml"
    file.write_text(before)
    with modify_yaml(file) as params:
        params[name] = value
    changed = [line for line in ndiff(before.splitlines(), file.read_text().splitlines()) if line[0] in "+-"]
    assert len(changed) == 2 and changed[1].startswith(f"+ {name}: {value}")


def test_every_output_of_the_summary_is_declared_and_the_metrics_are_four() -> None:
    stage = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]["summary_experiment"]
    declared = {Path(name).name for each in (*stage["outs"], *stage["metrics"]) for name in each}
    written = {"metrics.json", "measures.json", "ways.csv", "seen_unseen.csv", "loss.csv", "validation.csv"}
    assert declared == written and summary.HEADLINE == ("hm", "acc", "delta", "ausuc")


def test_a_plot_has_no_point_where_there_was_no_validation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "curve.csv").write_text("step,loss,lr,val_hm\n1,2,0.1,\n2,1.5,0.1,40\n3,1,0.1,\n")
    curve = summary.training_curve([tmp_path / "curve.csv"])
    assert curve["loss"].tolist() == [2, 1.5, 1]
    monkeypatch.chdir(tmp_path)
    summary.write_rows("validation.csv", curve[["step", "val_hm"]].dropna())
    written = pd.read_csv(summary.paths.SUMMARY / "validation.csv")
    assert written.values.tolist() == [[2, 40]]
