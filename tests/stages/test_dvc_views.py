"""What DVC shows and changes by itself.

One line of params.yaml, four headline numbers, no zeros for empty places, no network.
"""

import shutil
import subprocess
import sys
from difflib import ndiff
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from dvc.utils.serialize import modify_yaml

from stages import summary
from tests.paths import ROOT
from tests.tracking.browsing import all_of, chromium, until
from tools import _bootstrap


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


@pytest.fixture
def plots(tmp_path: Path) -> Path:
    """A repository with our configuration of DVC and one plot."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    shutil.copytree(ROOT / ".dvc", tmp_path / ".dvc", ignore=shutil.ignore_patterns("cache", "tmp", "config.local"))
    (tmp_path / "loss.csv").write_text("step,loss\n1,2\n2,1\n")
    (tmp_path / "dvc.yaml").write_text("plots:\n  - loss:\n      x: step\n      y: {loss.csv: loss}\n")
    shown = [sys.executable, "-m", "dvc", "plots", "show"]
    subprocess.run(shown, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    return tmp_path / "dvc_plots" / "index.html"


def test_plots_are_drawn_with_the_set_ups_vega_and_ask_the_network_for_nothing(plots: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="vl-convert-python is NOT installed: run tools/setup")
    (tmp_path / ".venv").mkdir()
    subprocess.run([sys.executable, "-c", _bootstrap.BUNDLE, str(tmp_path / ".venv" / "vega.js")], check=True)
    with chromium(tmp_path / "profile") as browser:
        browser.get(plots.as_uri())
        until(browser, lambda: all_of(browser, "#loss svg.marks path, #loss canvas"))
        asked = "return performance.getEntriesByType('resource').map(each => each.name)"
        assert not [name for name in browser.execute_script(asked) if name.startswith("http")]


def test_a_page_of_plots_on_a_clone_without_set_up_asks_for_vega_where_dvc_does(plots: Path, tmp_path: Path) -> None:
    with chromium(tmp_path / "profile") as browser:
        browser.execute_cdp_cmd("Network.enable", {})
        browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["https://*"]})
        browser.get(plots.as_uri())
        wanted = browser.execute_script("return [...document.scripts].map(each => each.src)")
    assert any("/vega-embed@" in address for address in wanted)
