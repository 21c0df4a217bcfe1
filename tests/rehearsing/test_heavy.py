"""A deep backbone on a CPU is rehearsed on fewer images, and predictions count those that were computed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from repro.evaluation import validation
from repro.training import prototypes
from stages.settings.grid import read_grid_file
from stages.settings.params import read_params
from tests.paths import ROOT
from tests.rehearsing.small import small_workspace
from tools.benchmarks.costs import Backbone, batch_of, images_of
from tools.rehearsing import checks, heavy
from tools.rehearsing.choosing import Chosen
from tools.rehearsing.heavy import embed_at_most, heavy_backbones, images_at_most
from tools.rehearsing.predicting import Rehearsed
from tools.rehearsing.shortening import short_settings
from tools.rehearsing.sizes import DatasetSize
from tools.rehearsing.work import Work

CPU = torch.device("cpu")
DEEP = Backbone(forward=20 * 10**9, step=60 * 10**9, weights=1, kept=1)


@pytest.fixture
def work(tmp_path: Path) -> Work:
    folder = small_workspace(tmp_path / "workspace")
    return Work(read_params(folder / "params.yaml"), read_grid_file(folder / "paper" / "grid.yaml"), ROOT, ["mini"])


def test_a_resnet_at_84_pixels_is_heavy_for_a_cpu_and_a_small_network_is_not(work: Work) -> None:
    small, large = ({"mini": DatasetSize({"train": 100}, 10, side, 3)} for side in (28, 84))
    assert heavy_backbones(work, small, CPU) == {}
    entry = replace(work.params.datasets["mini"], backbone={"name": "castle_resnet12", "options": {}})
    work.params = replace(work.params, datasets={"mini": entry})
    work.resolver = work.resolver.with_params(work.params)
    work.params = replace(work.params, pretraining=replace(work.params.pretraining, batch=128))
    work.resolver = work.resolver.with_params(work.params)
    assert list(heavy_backbones(work, large, CPU)) == ["mini"]
    assert heavy_backbones(work, large, torch.device("cuda")) == {}


def test_its_steps_have_fewer_images_and_everything_else_stays(work: Work) -> None:
    for key in (("pretrain", "mini-standard"), ("train", "mini-castle-1shot")):
        stage = work.stages[key]
        whole, less = (short_settings(stage, work, CPU, found) for found in ({}, {"mini": DEEP}))
        if stage.kind == "pretrain":
            assert whole.pretraining.batch == 128 and less.pretraining.batch == images_at_most(DEEP) < 128
            assert replace(less, pretraining=whole.pretraining) == whole
        else:
            before, after = (images_of(batch_of(each, 10)[0]) for each in (whole, less))
            assert after < before
            assert replace(less, options=whole.options) == whole


def test_the_smallest_shot_stands_for_its_method() -> None:
    real = Work(read_params(ROOT / "params.yaml"), read_grid_file(ROOT / "paper" / "grid.yaml"), ROOT, ["mini"])
    fewest, most = (
        {key for key in map(Chosen(real, heavy).stands_for, real.of("train")) if "-castle-" in key[1]}
        for heavy in (["mini"], [])
    )
    assert ("train", "mini-castle-1shot") in fewest and ("train", "mini-castle-5shot") not in fewest
    assert ("train", "mini-castle-5shot") in most and ("train", "mini-castle-1shot") not in most


def test_no_more_images_are_embedded_and_every_row_gets_an_embedding(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Tensor] = []

    def embed(network: Any, images: Any, rows_N: Tensor, *_: Any) -> Tensor:
        asked.append(rows_N)
        return rows_N[:, None].float()

    for modules, name in (heavy.EMBED, heavy.EMBED_ROWS):
        for module in modules:
            monkeypatch.setattr(module, name, embed)  # and put back afterwards
    embed_at_most(4)
    rows_N = torch.arange(10, 20)
    for module, name in ((validation, "embed"), (prototypes, "embed_rows")):
        found = getattr(module, name)(None, None, rows_N)
        assert len(asked.pop()) == 4
        assert found.shape == (10, 1) and found[0] == 10 and len(found.unique()) == 4
        assert (found[:, 0] <= rows_N).all() and (found.diff(dim=0) >= 0).all()
        assert torch.equal(getattr(module, name)(None, None, rows_N[:3])[:, 0], rows_N[:3].float())
        asked.clear()


def test_predictions_count_the_images_that_were_computed() -> None:
    told = Rehearsed({}, {}, {}, {}, {}, most_embedded={"mini": 100})
    assert told.embedded("mini", 250) == 100
    assert told.embedded("mini", 40) == 40
    assert told.embedded("office", 250) == 250


def test_what_a_cpu_is_slow_at_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda _: "flags: avx512f")
    said = list(checks.slow_here(CPU, "bf16", {"mini": DEEP}))
    assert "mini" in said[0] and "set precision.amp to none" in said[1]
    assert list(checks.slow_here(CPU, "bf16", {})) == said[1:], "also below a small network"
    assert list(checks.slow_here(CPU, "none", {"mini": DEEP})) == said[:1]
    assert list(checks.slow_here(torch.device("cuda"), "bf16", {})) == []
    monkeypatch.setattr(Path, "read_text", lambda _: "flags: avx512f avx512_bf16")
    assert list(checks.slow_here(CPU, "bf16", {"mini": DEEP})) == said[:1]
