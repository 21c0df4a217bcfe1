"""What every measure keeps: bounds, the order of means, and indifference to the order of queries and classes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.evaluation import ausuc
from repro.evaluation.metrics import measures
from tests.evaluation.test_metrics import Task, tasks

few = settings(max_examples=80)


def all_measures(task: Task, bias: float = 0.0) -> dict[str, float]:
    """Every measure of one task as numbers, AUSUC among them as a percentage."""
    found = {name: value.item() for name, value in {**measures(task.outcome, bias), **task.map()}.items()}
    points, _ = task.curve()
    return found | {"ausuc": 100 * ausuc.area(points).item()}


@st.composite
def distinct_tasks(draw: st.DrawFn) -> Task:
    """Tasks without ties: where two classes tie, their order has to decide."""
    classes, ways = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    seen_queries, unseen_queries = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    queries = seen_queries + unseen_queries
    logits = random.permutation(queries * (classes + ways)).reshape(queries, -1).astype(np.float32) / 8
    labels = [random.integers(0, classes, seen_queries), random.integers(classes, classes + ways, unseen_queries)]
    return Task(logits[:, :classes], logits[:, classes:], np.concatenate(labels), seen_queries)


@few
@given(task=tasks(), seed=st.integers(0, 2**32))
def test_the_order_of_queries_does_not_matter(task: Task, seed: int) -> None:
    random = np.random.default_rng(seed)
    seen, unseen = random.permutation(task.th), task.th + random.permutation(len(task.labels) - task.th)
    order = np.concatenate([seen, unseen])
    shuffled = Task(task.seen[order], task.unseen[order], task.labels[order], task.th)
    assert all_measures(shuffled) == pytest.approx(all_measures(task), abs=1e-9)


@few
@given(task=distinct_tasks(), seed=st.integers(0, 2**32))
def test_the_names_of_classes_do_not_matter(task: Task, seed: int) -> None:
    random, classes = np.random.default_rng(seed), task.seen.shape[1]
    seen, unseen = random.permutation(classes), random.permutation(task.unseen.shape[1])
    renamed = np.concatenate([np.argsort(seen), classes + np.argsort(unseen)])
    other = Task(task.seen[:, seen], task.unseen[:, unseen], renamed[task.labels], task.th)
    assert all_measures(other) == pytest.approx(all_measures(task), abs=1e-9)


@few
@given(task=tasks(), shift=st.integers(-8, 8).map(lambda value: value / 4), bias=st.sampled_from([-1.0, 0.0, 0.5]))
def test_a_bias_on_the_seen_logits_is_calibration_and_leaves_the_curve(task: Task, shift: float, bias: float) -> None:
    shifted = Task(task.seen + np.float32(shift), task.unseen, task.labels, task.th)
    moved, still = all_measures(shifted, bias + shift), all_measures(task, bias)
    for name in ("cal_acc", "cal_s_su", "cal_u_su", "cal_hm", "ausuc", "s_s", "u_u"):
        assert moved[name] == pytest.approx(still[name], abs=1e-9), name


@few
@given(task=tasks())
def test_means_keep_their_order_and_all_measures_their_bounds(task: Task) -> None:
    found = all_measures(task)
    assert all(-1e-9 <= value <= 100 + 1e-9 for value in found.values()), found
    seen, unseen = found["s_su"], found["u_su"]
    assert found["hm"] <= (seen * unseen) ** 0.5 + 1e-9 <= (seen + unseen) / 2 + 2e-9
    assert (found["hm"] == 0) == (min(seen, unseen) == 0)
    share = task.th / len(task.labels)
    assert found["acc"] == pytest.approx(share * seen + (1 - share) * unseen, abs=1e-9)
    assert found["delta"] == pytest.approx((found["s_s"] - seen + found["u_u"] - unseen) / 2, abs=1e-9)


@few
@given(task=tasks())
def test_the_area_lies_between_the_curves_corners(task: Task) -> None:
    points, _ = task.curve()
    unseen, seen = points.unseen_TP[0], points.seen_TP[0]
    assert (unseen.diff() >= 0).all() and (seen.diff() <= 1e-12).all()
    assert unseen[0] == 0 and seen[-1] == pytest.approx(0, abs=1e-12)
    area = ausuc.area(points).item()
    assert area <= unseen[-1].item() * seen[0].item() + 1e-12
    # Every point of a falling curve spans a rectangle below it, up to the half of a step that trapezoids take.
    steps = (unseen.diff() * -seen.diff()).sum().item() / 2
    assert area + steps >= (unseen * seen).max().item() - 1e-12
