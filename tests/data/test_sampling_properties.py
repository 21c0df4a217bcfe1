"""What every draw keeps, whatever is asked for: domain rules of tasks, and the batches that training draws."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repro.data.batches import EpisodeBatches, ShuffledBatches
from repro.data.dataset import Dataset
from repro.data.episodes import TaskSpec, draw_exemplars, draw_tasks

# The dataset is read only, so examples may share it.
few = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@few
@given(
    spec=st.builds(
        TaskSpec,
        split=st.sampled_from(["val", "test"]),
        way=st.integers(1, 6),
        shot=st.integers(1, 5),
        tasks=st.just(20),
        query=st.integers(1, 15),
    ),
    seed=st.integers(0, 2**32),
)
def test_a_task_keeps_to_one_domain_and_repeats_no_image(tiny_domains: Dataset, spec: TaskSpec, seed: int) -> None:
    tasks = draw_tasks(tiny_domains, spec, seed)
    own = torch.cat([tasks.support_TWK, tasks.query_TWQ], dim=2).long()
    assert torch.equal(tiny_domains.labels_N[own], tasks.classes_TW.long()[..., None].expand_as(own))
    domain_T = tiny_domains.domains_N[own[:, 0, 0]]
    assert (tiny_domains.domains_N[own] == domain_T[:, None, None]).all()
    everything = torch.cat([own.flatten(1), tasks.seen_TQ.long()], dim=1)
    assert all(len(set(row)) == len(row) for row in everything.tolist())
    assert (tiny_domains.labels_N[tasks.seen_TQ.long()] < tiny_domains.seen_classes).all()
    if tiny_domains.header.domain_rule == "per_image":
        assert (tiny_domains.domains_N[tasks.seen_TQ.long()] == domain_T[:, None]).all()


@few
@given(
    classes=st.integers(1, 6),
    shot=st.integers(1, 5),
    queries=st.integers(0, 10),
    free=st.integers(0, 40),
    tasks=st.integers(1, 3),
    step=st.integers(1, 10**6),
    seed=st.integers(0, 2**32),
)
def test_a_training_step_draws_distinct_training_images_of_its_classes(
    tiny_domains: Dataset, classes: int, shot: int, queries: int, free: int, tasks: int, step: int, seed: int
) -> None:
    sizes = {"classes": classes, "shot": shot, "queries": queries, "free": free, "tasks": tasks}
    drawn = EpisodeBatches(tiny_domains, **sizes, seed=seed).draw(step)
    own = torch.cat([drawn.support_TCK, drawn.query_TCQ], dim=2)
    assert own.shape == (tasks, classes, shot + queries) and len(drawn.free_B) == free
    assert torch.equal(tiny_domains.labels_N[own], drawn.labels_TC[..., None].expand_as(own))
    assert torch.equal(tiny_domains.labels_N[drawn.free_B], drawn.free_labels_B)
    assert torch.isin(drawn.rows_N, tiny_domains.roles["train"]).all()
    for rows in (*own.flatten(1).tolist(), *drawn.labels_TC.tolist(), drawn.free_B.tolist()):
        assert len(set(rows)) == len(rows)
    assert len(tiny_domains.domains_N[own].unique()) == 1
    again = EpisodeBatches(tiny_domains, **sizes, seed=seed).draw(step)
    assert torch.equal(drawn.rows_N, again.rows_N)


@few
@given(batch=st.integers(1, 192), epoch=st.integers(0, 50), seed=st.integers(0, 2**32))
def test_an_epoch_passes_over_each_training_image_at_most_once(
    tiny: Dataset, batch: int, epoch: int, seed: int
) -> None:
    batches = ShuffledBatches(tiny, batch, seed)
    first = 1 + epoch * batches.per_epoch
    rows = torch.cat([batches.draw(step).rows_N for step in range(first, first + batches.per_epoch)])
    assert len(rows.unique()) == len(rows) == batches.per_epoch * batch
    assert len(tiny.roles["train"]) - len(rows) < batch
    assert torch.isin(rows, tiny.roles["train"]).all()


@few
@given(number=st.integers(1, 30), seed=st.integers(0, 2**32))
def test_remembered_images_are_distinct_and_of_their_class(tiny: Dataset, number: int, seed: int) -> None:
    rows_SM = draw_exemplars(tiny, number, seed)
    assert rows_SM.shape == (tiny.seen_classes, min(number, 24))
    assert torch.equal(tiny.labels_N[rows_SM], torch.arange(tiny.seen_classes)[:, None].expand_as(rows_SM))
    assert len(rows_SM.unique()) == rows_SM.numel()
    assert torch.equal(rows_SM, draw_exemplars(tiny, 30, seed)[:, : rows_SM.shape[1]])


@pytest.mark.parametrize("number", [1, 5])
def test_two_seeds_remember_other_images(tiny: Dataset, number: int) -> None:
    assert not torch.equal(draw_exemplars(tiny, number, 0), draw_exemplars(tiny, number, 1))
