"""A whole training step: the plain formulation and the loop of this repository leave the same weights."""

import copy

import pytest
import torch

from repro.data.dataset import Dataset
from repro.data.loading import ImageStore, normalise
from repro.data.seeding import generator
from repro.methods.acastle import ACastle
from repro.methods.castle import Castle
from repro.training.episodic import MetaTraining, embedded_batch, meta_train
from tests.training.small import DIM, small_backbone
from tools.benchmarks.steps import CASES, reference_step


@pytest.mark.parametrize("kind", CASES.values())
def test_the_reference_step_equals_a_step_of_the_loop(kind: type[Castle] | type[ACastle], tiny: Dataset) -> None:
    torch.manual_seed(0)
    options = {"dictionary": "released", "dropout": 0.0, "classes": 6, "classifiers": 9, "queries": 16}
    ours = kind(small_backbone(dropout=0.0), DIM, tiny.seen_classes, **options)
    ours.synthesis.dictionary.attention_dropout = 0.0  # the released form has it fixed; draws would differ
    plain = copy.deepcopy(ours).train()
    training = MetaTraining(lr=0.05, momentum=0.9, steps=1, validate_every=1, batch_norm="train")
    loop = meta_train(ours, tiny, training, shot=1, seed=3, validate=None)
    drawn = loop.draws.draw(1)
    (metrics,) = loop
    images_NCHW = normalise(ImageStore(tiny.images_NHWC, torch.device("cpu")).fetch(drawn.rows_N)).contiguous()
    draws = generator(3, "loss", 1)
    loss = reference_step(plain, images_NCHW, lambda found_ND: embedded_batch(found_ND, drawn), draws, lr=0.05)
    assert metrics.loss == pytest.approx(loss, abs=1e-5)
    trained = plain.state_dict()
    for name, tensor in ours.state_dict().items():
        torch.testing.assert_close(tensor, trained[name], atol=1e-5, rtol=1e-4, msg=name)
