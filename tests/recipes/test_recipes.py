"""The README's recipes, performed literally in a copy of the repository."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from repro import paths
from repro.editions.edition import EDITIONS
from tests.paths import ROOT
from tests.pipeline.workspace import call, executed

pytestmark = [pytest.mark.timeout(1200), pytest.mark.usefixtures("forked_stages")]
README = (ROOT / "README.md").read_text()


def recipe(name: str) -> str:
    """The block of code below its mark in the README."""
    (block,) = re.findall(rf"<!-- recipe: {name} -->\n```\w+\n(.*?)```", README, re.DOTALL)
    return str(block)


def command(change: str) -> list[str]:
    """The README's command that tries this change."""
    (found,) = re.findall(rf"`(dvc exp run -S {change}[^`]*)`", README)
    return str(found).split()


@pytest.fixture(scope="module")
def copied(workspace: tuple[Path, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with small parameters, in which everything has run, and the new method's file in it."""
    folder = tmp_path_factory.mktemp("recipes") / "copy"
    shutil.copytree(workspace[0], folder, symlinks=True)
    (folder / "repro" / "methods" / "centroid.py").write_text(recipe("method"))
    return folder


def insert(file: Path, before: str, text: str) -> None:
    """Put text in front of the line that begins so."""
    content = file.read_text()
    assert content.count(before) == 1
    file.write_text(content.replace(before, text + before))


def test_a_method_is_one_file(copied: Path) -> None:
    done = call(copied, *command("method=centroid"))
    assert executed(done) == ["plan", "train_experiment", "evaluate_experiment", "summary_experiment"]
    shown = call(copied, "dvc", "metrics", "show", "--json").stdout
    assert "hm" in shown
    call(copied, "git", "checkout", "--quiet", "--", "params.yaml")


def test_the_suite_of_all_methods_is_green_on_it(copied: Path) -> None:
    for name in ("tests", "pyproject.toml"):
        (copied / name).symlink_to(ROOT / name)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "centroid"]
    tests = ["tests/methods/test_registry.py", "tests/methods/test_cards.py"]
    environment = os.environ | {"PYTHONPATH": str(copied), "PYTHONSAFEPATH": "1"}
    done = subprocess.run([*command, *tests], cwd=copied, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) > 5
    for name in ("tests", "pyproject.toml"):
        (copied / name).unlink()


def test_a_line_and_an_entry_put_it_into_the_tables(copied: Path) -> None:
    insert(copied / "paper" / "grid.yaml", "adapted:", recipe("cell").replace("all", "5").replace("[5, 5]", "[5]"))
    params = yaml.safe_load((copied / "params.yaml").read_text())
    params["paper"] |= yaml.safe_load(*re.findall(r"`(rows: \[centroid\])` under `paper`", README))
    (copied / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    with (copied / "repro" / "report" / "layout.py").open("a") as layout:
        layout.write(recipe("table"))
    ran = executed(call(copied, "dvc", "repro", "paper"))
    assert f"{paths.EVALUATIONS}:evaluate_untrained@mini-centroid-1shot" in ran and ran[-1] == "paper"
    tables = (copied / "paper" / "tables.tex").read_text()
    row = next(line for line in tables.splitlines() if line.strip().startswith("Centroid"))
    assert re.search(r"\d\d\.\d", row), row
    assert "Centroids beside CASTLE" in tables
    # A second time nothing runs: the recipe left the pipeline whole.
    assert executed(call(copied, "dvc", "repro", "paper")) == []


def test_a_dataset_is_one_entry(copied: Path, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    for number in range(30):
        folder = tmp_path / "flowers" / f"flower-{number}"
        folder.mkdir(parents=True)
        pattern = random.integers(0, 255, (12, 12, 3))
        for image in range(40):
            noisy = (pattern + random.integers(-40, 40, pattern.shape)).clip(0, 255).astype(np.uint8)
            Image.fromarray(noisy).save(folder / f"{image}.png")
    entry = yaml.safe_load(recipe("dataset"))
    entry["flowers"]["options"] |= {"root": str(tmp_path / "flowers"), "classes": [10, 10, 10]}
    params = yaml.safe_load((copied / "params.yaml").read_text())
    params["datasets"] |= entry
    (copied / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    call(copied, *command("dataset=flowers"))
    assert (copied / "data" / "flowers").is_dir()


def test_tests_that_look_at_params_grid_and_layout_stay_green(tmp_path: Path) -> None:
    """With every recipe in a copy of all that git tracks."""
    for name in call(ROOT, "git", "ls-files").stdout.splitlines():
        if not Path(name).is_relative_to(EDITIONS):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "repro" / "methods" / "centroid.py").write_text(recipe("method"))
    insert(tmp_path / "paper" / "grid.yaml", "adapted:", recipe("cell"))
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    params["datasets"] |= yaml.safe_load(recipe("dataset"))
    params["paper"]["rows"].append("centroid")
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    with (tmp_path / "repro" / "report" / "layout.py").open("a") as layout:
        layout.write(recipe("table"))
    call(tmp_path, "git", "init", "--quiet")
    tests = [
        "architecture/test_stages.py::test_every_cell_that_the_paper_needs_is_measured",
        "architecture/test_stages.py::test_every_stage_of_dvc_has_its_settings_and_depends_on_them",
        "bad_inputs/test_params.py::test_wrong_parameters_are_refused_before_anything_runs[a misspelt dataset]",
        "report/test_layout.py",
        "stages/test_scales.py::test_budgets_of_the_embedded_benchmark_reach_no_other_scale",
        "tools/test_costs.py::test_steps_and_images_are_those_of_the_settings",
    ]
    call(tmp_path, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(f"tests/{name}" for name in tests))


def test_another_rate_for_a_cell_and_for_a_dataset_re_runs_them_alone(copied: Path) -> None:
    call(copied, "git", "add", "--all")
    call(copied, "git", "commit", "--quiet", "--message", "recipes")
    grid = yaml.safe_load((copied / "paper" / "grid.yaml").read_text())
    grid["trained"]["mini-castle-1shot"]["training"] = {"lr": 0.01}
    (copied / "paper" / "grid.yaml").write_text(yaml.safe_dump(grid, sort_keys=False))
    call(copied, "dvc", "repro", "plan")
    stale = set(yaml.safe_load(call(copied, "dvc", "status", "--json").stdout))
    assert "train@mini-castle-1shot" in stale and "train@mini-protonet-1shot" not in stale
    call(copied, "git", "checkout", "--quiet", "--", "paper/grid.yaml")
    params = yaml.safe_load((copied / "params.yaml").read_text())
    params["datasets"]["heterogeneous"]["training"] = {"lr": 0.01}
    (copied / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    call(copied, "dvc", "repro", "plan")
    stale = set(yaml.safe_load(call(copied, "dvc", "status", "--json").stdout))
    assert {name for name in stale if name.startswith("train@")} == {"train@heterogeneous-acastle-1shot"}
