"""Evaluation from images against the per-task formulation, which encodes every task's images anew.

Ours passes each image of the pool through the backbone once (batch norm folded, channels last) and evaluates all tasks
from the embeddings; the reference encodes support and queries of each task and scores that task. Setting: ResNet-12 at
84×84 pixels, else as in `evaluation.py`: 24,800 images in the pool, 10,000 tasks of 155 images (5 ways) or 620 (20).
Encoding is timed on some images on both sides and scaled by their number; scoring is timed as without the encoder.
"""

from dataclasses import replace

import numpy as np
import torch
from torch import nn

from repro.data.dataset import Dataset
from repro.data.episodes import Tasks, TaskSpec
from repro.data.loading import ImageStore, normalise
from repro.data.pixels import PixelsInMemory
from repro.evaluation.embed import Embedded, embed
from repro.methods.base import Method
from repro.methods.castle import Castle
from repro.models import create_backbone
from tools.benchmarks.evaluation import CHOICES, REFERENCE_TASKS, TASKS, THREADS, case, example_dataset, reference_task
from tools.benchmarks.timing import Part, at_best_threads, interleaved_parts, threads

SIZE, SOME_IMAGES = 84, 64
CPU = torch.device("cpu")


def bench_encoder(way: int, repeats: int) -> dict[str, float]:
    """Medians over interleaved repeats, in seconds for 10,000 tasks: ours_s, reference_s and ratio."""
    torch.manual_seed(0)
    backbone, dim = create_backbone("castle_resnet12", 3)
    dataset = example_dataset()
    one = np.random.default_rng(0).integers(0, 256, (1, SIZE, SIZE, 3), dtype=np.uint8)
    dataset = replace(dataset, pixels=PixelsInMemory(np.broadcast_to(one, (len(dataset.labels_N), SIZE, SIZE, 3))))
    some_N, spec = torch.arange(SOME_IMAGES), TaskSpec("test", way, 1, TASKS)
    images_of_a_task = way * (spec.shot + spec.query) + spec.seen_queries
    encoding = Part(
        lambda: embed(backbone, dataset, some_N, CPU),
        lambda: reference_embeddings(backbone, dataset, some_N),
        ours_times=len(dataset.labels_N) / SOME_IMAGES,
        reference_times=TASKS * images_of_a_task / SOME_IMAGES,
    )
    ours, reference = case(Castle, dataset, dim, way, TASKS, REFERENCE_TASKS)
    with threads(THREADS):
        scoring = Part(ours, at_best_threads(reference, CHOICES), reference_times=TASKS / REFERENCE_TASKS)
        return interleaved_parts([encoding, scoring], repeats)


def rows_of(tasks: Tasks, t: int) -> torch.Tensor:
    """The dataset rows of one task: support, queries and seen queries."""
    return torch.cat([part[t].flatten().long() for part in (tasks.support_TWK, tasks.query_TWQ, tasks.seen_TQ)])


@torch.no_grad()
def reference_embeddings(backbone: nn.Module, dataset: Dataset, rows_N: torch.Tensor) -> torch.Tensor:
    """One forward of these images through the network as it was trained."""
    return backbone.eval()(normalise(ImageStore(dataset.images_NHWC, CPU).fetch(rows_N)).contiguous())


def reference_task_from_images(
    backbone: nn.Module, method: Method, dataset: Dataset, tasks: Tasks, t: int, bias: float
) -> dict[str, float]:
    """Every measure of one task in percent, its images encoded for it alone."""
    rows_N = rows_of(tasks, t)
    own_ND = reference_embeddings(backbone, dataset, rows_N)
    table_ND = own_ND.new_zeros(len(dataset.labels_N), own_ND.shape[1])
    table_ND[rows_N] = own_ND
    embedded = Embedded(torch.arange(len(table_ND)), table_ND, "benchmark")
    return reference_task(method, embedded, dataset, tasks, t, bias, False)
