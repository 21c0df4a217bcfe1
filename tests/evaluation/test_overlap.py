"""Training images among the seen test images: which embeddings are swapped, and what is measured with them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from repro.data.dataset import Dataset
from repro.data.episodes import draw_exemplars, draw_tasks
from repro.errors import BadInput
from repro.evaluation.cell import evaluate_cell
from repro.evaluation.embed import Embedded
from repro.evaluation.overlap import overlapping
from tests.evaluation.test_protocol import SPEC, Nearest, random_embeddings


def swapped(data: Dataset, before: Embedded, after: Embedded) -> torch.Tensor:
    """The rows whose embedding is another one."""
    return before.rows_N[(before.embeddings_ND != after.embeddings_ND).any(dim=1)]


def test_a_share_of_every_seen_class_stands_for_training_images_of_the_class(tiny: Dataset) -> None:
    exemplars_SM = draw_exemplars(tiny, 12, 0)
    embedded = random_embeddings(tiny, exemplars_SM)
    half = overlapping(embedded, tiny, exemplars_SM, 50, 0)
    rows_N = swapped(tiny, embedded, half)
    per_class = len(tiny.roles["seen_test"]) // tiny.seen_classes
    assert set(rows_N.tolist()) <= set(tiny.roles["seen_test"].tolist())
    assert torch.bincount(tiny.labels_N[rows_N]).tolist() == [round(per_class / 2)] * tiny.seen_classes
    for row in rows_N:
        own = embedded.of(exemplars_SM[tiny.labels_N[row]])
        assert (own == half.of(row)).all(dim=1).any()
    less = swapped(tiny, embedded, overlapping(embedded, tiny, exemplars_SM, 25, 0))
    assert 0 < len(less) < len(rows_N) and set(less.tolist()) <= set(rows_N.tolist())


def test_more_training_images_than_were_embedded_are_refused(tiny: Dataset) -> None:
    exemplars_SM = draw_exemplars(tiny, 1, 0)
    embedded = random_embeddings(tiny, exemplars_SM)
    with pytest.raises(BadInput, match="an overlap of 100 % takes .* training images of a class, 1 have an embedding"):
        overlapping(embedded, tiny, exemplars_SM, 100, 0)


def test_the_first_way_is_measured_once_more_and_unseen_queries_are_what_they_were(tiny: Dataset) -> None:
    exemplars_SM = draw_exemplars(tiny, 12, 0)
    embedded = random_embeddings(tiny, exemplars_SM)
    tasks, val = (draw_tasks(tiny, replace(SPEC, split=split), 0) for split in ("test", "val"))
    method = Nearest(tiny.seen_classes)
    overlaps = {"overlap50": overlapping(embedded, tiny, exemplars_SM, 50, 0)}
    found = evaluate_cell(method, embedded, tiny, {3: tasks}, {3: val}, overlaps=overlaps).columns
    plain, mixed = (found["protocol"] == name for name in ("gfsl", "overlap50"))
    assert mixed.sum() == plain.sum() == SPEC.tasks
    for name in ("u_u", "u_su", "cal_u_su"):
        assert np.array_equal(found[name][plain], found[name][mixed])
    assert not np.array_equal(found["s_s"][plain], found["s_s"][mixed])
