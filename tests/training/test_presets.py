"""Presets: the numbers that the paper states, and that every preset can be trained with."""

from dataclasses import replace

import pytest
import torch

from repro.data.dataset import Dataset
from repro.methods.registry import method_class
from repro.models.pretrained import Pretrained
from repro.training.episodic import meta_train
from repro.training.presets import META_TRAINING, PRETRAINING
from repro.training.pretrain import pretrain
from tests.training.small import DIM, small_backbone


def test_the_papers_numbers() -> None:
    pre, meta = PRETRAINING["paper"].optimisation, META_TRAINING["paper"]
    assert (pre.lr, pre.momentum) == (0.1, 0.9)
    assert (meta.optimisation.lr, meta.optimisation.momentum) == (1e-4, 0.9)
    assert [meta.optimisation.schedule(step, 10_000) for step in (2000, 2001)] == [1, 0.5]
    assert [meta.method[name] for name in ("classes", "classifiers", "queries")] == [24, 64, 128]


def test_the_released_learning_rate_falls_every_ten_batches() -> None:
    released = META_TRAINING["released"]
    rates = [released.optimisation.lr * released.optimisation.schedule(step, 300) for step in (1, 11, 31)]
    assert rates == pytest.approx([2e-4, 2e-5, 2e-7])
    method = method_class("castle")(small_backbone(), DIM, 64, **released.method)
    assert not method.seen_weight_SD.requires_grad


@pytest.mark.parametrize("name", PRETRAINING)
def test_every_pre_training_preset_runs(tiny: Dataset, name: str) -> None:
    torch.manual_seed(0)
    preset = PRETRAINING[name]
    model = Pretrained(small_backbone(), DIM, tiny.seen_classes, preset.classifier, **preset.classifier_options)
    training = pretrain(
        model,
        tiny,
        preset.optimisation,
        epochs=2,
        batch=preset.batch,
        seed=0,
        validate=None,
        label_smoothing=preset.label_smoothing,
        augmentation=replace(preset.augmentation, crop_padding=1),
    )
    assert [metrics.step for metrics in training] == [1, 2]


@pytest.mark.parametrize("method", ["castle", "acastle"])
@pytest.mark.parametrize("name", META_TRAINING)
def test_every_meta_training_preset_runs(tiny: Dataset, name: str, method: str) -> None:
    torch.manual_seed(0)
    preset = META_TRAINING[name]
    learner = method_class(method)(small_backbone(), DIM, tiny.seen_classes, **preset.method | {"classes": 6})
    training = meta_train(
        learner,
        tiny,
        preset.optimisation,
        shot=1,
        steps=3,
        seed=0,
        validate=None,
        validate_every=preset.validate_every,
        batch_norm=preset.batch_norm,
        augmentation=replace(preset.augmentation, crop_padding=1),
    )
    assert [metrics.step for metrics in training] == [1, 2, 3]
