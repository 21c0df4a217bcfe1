"""Evaluation from images: encoding every task's images anew gives what encoding every image once gives."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from repro.data.episodes import TaskSpec, draw_tasks
from repro.data.pixels import PixelsInMemory
from repro.evaluation.bound import BoundTasks, TaskPool
from repro.evaluation.embed import Embedded, embed
from repro.methods.castle import Castle
from repro.models import create_backbone
from tools.benchmarks import encoder
from tools.benchmarks.evaluation import BIAS, example_dataset, example_method, measured


def test_the_reference_from_images_agrees() -> None:
    torch.manual_seed(0)
    backbone, dim = create_backbone("castle_convnet4_small", 3)
    dataset = example_dataset(seen=9, test=6, seen_images=20, test_images=25)
    images = np.random.default_rng(0).integers(0, 256, (len(dataset.labels_N), 16, 16, 3), dtype=np.uint8)
    dataset = replace(dataset, pixels=PixelsInMemory(images))
    rows_N = torch.arange(len(images))
    embedded = Embedded(rows_N, embed(backbone, dataset, rows_N, encoder.CPU), "benchmark")
    method, tasks = example_method(Castle, dataset, dim), draw_tasks(dataset, TaskSpec("test", 4, 1, 8, 5), 0)
    found = measured(method, BoundTasks(tasks, TaskPool("test", embedded, dataset, encoder.CPU)), False).values
    for t in range(8):
        expected = encoder.reference_task_from_images(backbone, method, dataset, tasks, t, BIAS)
        for name, value in expected.items():
            # A query whose best two classes tie to six digits may fall either way.
            assert found[name][t].item() == pytest.approx(value, abs=100 / 20 + 1e-3), (name, t)
        assert expected["ausuc"] == pytest.approx(found["ausuc"][t].item(), abs=1)
