"""The scales: one pipeline, three sets of numbers; those that the paper and the release state are held here."""

from pathlib import Path

import pytest
import torch
from dvc.repo import Repo

from repro.data.dataset import Dataset
from repro.methods.registry import method_class
from repro.models.pretrained import Pretrained
from repro.training.episodic import meta_train
from repro.training.pretrain import pretrain
from stages._params import Params, read_params
from stages.shared.configs import evaluation_config, training_config
from stages.shared.pretraining import pretraining_config
from stages.shared.training import augmentation_from, optimisation_from
from tests.training.small import DIM, small_backbone

ROOT = Path(__file__).resolve().parents[2]
FILES = {"embedded": ROOT / "params.yaml"} | {file.stem: file for file in (ROOT / "tools" / "scales").glob("*.yaml")}
CONFIGS = {"pretrain": pretraining_config, "train": training_config, "evaluate": evaluation_config}
every_scale = pytest.mark.parametrize("scale", FILES)


def params(scale: str) -> Params:
    return read_params(FILES[scale])


def test_there_are_the_papers_and_the_releases_presets() -> None:
    assert set(FILES) == {"embedded", "paper", "released"}


@every_scale
def test_all_scales_have_the_same_pipeline(scale: str) -> None:
    ours, embedded = params(scale), params("embedded")
    for group in ("datasets", "episodes", "backbones", "methods"):
        assert list(getattr(ours, group)) == list(getattr(embedded, group)), group
    assert list(ours.pretraining.classifiers) == list(embedded.pretraining.classifiers)


@every_scale
def test_every_line_of_the_grid_is_understood(scale: str) -> None:
    for stage in Repo(str(ROOT)).index.stages:
        _, _, _, name, *told = stage.cmd.split()
        if name in CONFIGS:
            assert CONFIGS[name](["", *told], params(scale))["dataset"] in params(scale).datasets, stage.addressing


def test_the_papers_numbers() -> None:
    paper = params("paper")
    assert (paper.pretraining.optimisation.lr, paper.pretraining.optimisation.momentum) == (0.1, 0.9)
    for name in ("castle", "acastle", "castle_minus"):
        training = paper.methods[name].training
        assert training is not None
        optimisation = optimisation_from(training.optimisation)
        assert (optimisation.lr, optimisation.momentum) == (1e-4, 0.9)
        assert [optimisation.schedule(step, 10_000) for step in (2000, 2001)] == [1, 0.5]
        spec = method_class(name)(small_backbone(), DIM, 64, **paper.methods[name].options).batch_spec(5)
        assert spec is not None and (spec.classes, spec.shot, spec.free) == (24, 5, 128)
    assert {entry.tasks for episodes in paper.episodes.values() for entry in episodes.test} == {10_000}


def test_the_releases_numbers() -> None:
    castle = params("released").methods["castle"]
    assert castle.training is not None
    optimisation = optimisation_from(castle.training.optimisation)
    rates = [optimisation.lr * optimisation.schedule(step, 300) for step in (1, 11, 31)]
    assert rates == pytest.approx([2e-4, 2e-5, 2e-7])
    method = method_class("castle")(small_backbone(), DIM, 64, **castle.options)
    assert not method.seen_weight_SD.requires_grad


@every_scale
def test_every_pre_training_runs(scale: str, tiny: Dataset) -> None:
    torch.manual_seed(0)
    chosen, classifier = params(scale).pretraining, params(scale).pretraining.classifiers["linear"]
    model = Pretrained(small_backbone(), DIM, tiny.seen_classes, classifier.name, **classifier.options)
    training = pretrain(
        model,
        tiny,
        optimisation_from(chosen.optimisation),
        epochs=2,
        batch=chosen.batch,
        seed=0,
        validate=None,
        label_smoothing=chosen.label_smoothing,
        augmentation=augmentation_from(chosen.augmentation.model_copy(update={"crop_padding": 1})),
    )
    assert [metrics.step for metrics in training] == [1, 2]


@pytest.mark.parametrize("name", ["castle", "acastle"])
@every_scale
def test_every_meta_training_runs(scale: str, name: str, tiny: Dataset) -> None:
    torch.manual_seed(0)
    chosen = params(scale).methods[name]
    assert chosen.training is not None
    method = method_class(name)(small_backbone(), DIM, tiny.seen_classes, **chosen.options | {"classes": 6})
    training = meta_train(
        method,
        tiny,
        optimisation_from(chosen.training.optimisation),
        shot=1,
        steps=3,
        seed=0,
        validate=None,
        validate_every=chosen.training.validate_every,
        batch_norm=chosen.training.batch_norm,
        augmentation=augmentation_from(chosen.training.augmentation.model_copy(update={"crop_padding": 1})),
    )
    assert [metrics.step for metrics in training] == [1, 2, 3]
