"""SCALING.md: its tables are what `tools/bench --costs` counts, and the counts agree with a second route."""

import re
from collections import Counter
from pathlib import Path

import pytest
import torch
from dvc.repo import Repo

from repro import paths
from repro.models import create_backbone
from repro.training.checkpoints import Best, Snapshot, write_checkpoint
from stages.settings.grid import read_grid
from stages.settings.params import read_params
from tests.paths import ROOT
from tools.benchmarks import costs
from tools.benchmarks.cost_tables import tables

COSTS = costs.Costs(costs.planned())


def test_scaling_md_holds_the_tables_that_are_counted() -> None:
    written = (ROOT / "SCALING.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"^\| \d+ \| (\d+) \| [\d,]+ \| [\d,]+ \| \d+ B \|", written, re.MULTILINE)
    if len(COSTS.of_evaluation) > int(lines) or set(read_params(ROOT / paths.PARAMS).datasets) > set(costs.IMAGES):
        pytest.skip("SCALING.md counts the grid without lines and datasets of one's own: `tools/bench --costs`")
    for table in tables().split("\n\n"):
        assert table in written, f"run `tools/bench --costs` and put this into SCALING.md:\n{table}"
    assert len(written.partition("## Measured speed")[0].splitlines()) <= 100


def test_the_operations_of_a_backbone_are_those_of_its_convolutions() -> None:
    network, _ = create_backbone("castle_resnet12", 3)
    products = []
    for module in network.modules():
        if isinstance(module, torch.nn.Conv2d):
            module.register_forward_hook(lambda one, _, out: products.append(out[0].numel() * one.weight[0].numel()))
    with torch.no_grad():
        network.eval()(torch.zeros(1, 3, 84, 84))
    unit = costs.backbone("castle_resnet12", 84)
    assert unit.forward == 2 * sum(products)
    # Backward: once more for the inputs and once for the weights; the images themselves need no gradient.
    first = 2 * (products[0] + products[3])
    assert unit.step == pytest.approx(3 * unit.forward - first, rel=1e-9)


def test_a_checkpoint_has_four_copies_of_the_weights(tmp_path: Path) -> None:
    weights = {"weight": torch.zeros(1000, 1000)}
    best = {name: Best(1.0, 1) for name in ("hm", "u_u")}
    kept = {f"{name}/weight": torch.zeros(1000, 1000) for name in best}
    snapshot = Snapshot(1, best, {}, weights, kept, weights, {"loss": torch.zeros(1)})
    write_checkpoint(tmp_path, snapshot, {})
    written = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    assert written == pytest.approx(costs.CHECKPOINT_COPIES * costs.FLOAT * 10**6, rel=0.01)


def test_every_stage_of_the_pipeline_is_counted() -> None:
    names = Counter(stage.addressing.partition("@")[0] for stage in Repo(str(ROOT)).index.stages)
    assert f"\n| {sum(names.values())} | " in tables().split("\n\n")[-1]
    known = [line for line in read_grid(ROOT).trained.values() if line.dataset in costs.IMAGES]
    assert len(known) == len(list(COSTS.meta_trainings()))


def test_steps_and_images_are_those_of_the_settings() -> None:
    mini = next(COSTS.pretrainings())
    assert (mini.steps, mini.images) == (500 * (38_400 // 128), 128)
    cells = dict(zip((each.cell for each in COSTS.of_training), COSTS.meta_trainings(), strict=True))
    assert (cells["mini-castle-1shot"].steps, cells["mini-castle-1shot"].images) == (10_000, 24 + 128)
    assert cells["mini-castle-5shot"].images == 24 * 5 + 128
    assert cells["mini-castle-1shot-scratch"].steps == mini.steps + 10_000  # in place of pre-training, and besides
    assert cells["mini-dfsl-1shot"].trained == cells["mini-dfsl-1shot"].kept == 0  # its backbone does not learn
