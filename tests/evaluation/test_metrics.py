"""Measures against plain loops over queries and biases, and against vectors made with the authors' code."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from repro.evaluation import ausuc
from repro.evaluation.average_precision import map_measures
from repro.evaluation.calibration import best_bias
from repro.evaluation.metrics import QueryOutcomes, confidences, harmonic, joint_accuracies, measures, outcome
from repro.methods.base import Scores
from tests.evaluation import brute_force

GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "metrics.npz")
CASES = sorted({name.split("__")[0] for name in GOLDEN.files if not name.startswith("ci")} - {"case_names"})


class Task:
    """One task's logits in both forms: arrays for the loops, a batch of one for the product."""

    def __init__(self, seen: np.ndarray, unseen: np.ndarray, labels: np.ndarray, th: int) -> None:
        self.seen, self.unseen, self.labels, self.th = seen, unseen, labels, th
        self.scores = Scores.of(torch.from_numpy(seen)[None], torch.from_numpy(unseen)[None])
        self.outcome = outcome(self.scores, torch.from_numpy(labels)[None], th, seen.shape[1])

    def curve(self) -> tuple[ausuc.Curve, torch.Tensor]:
        """The curve, and the share of classes that occur (seen × unseen)."""
        seen, unseen = self.outcome.parts(self.outcome.labels_TQ)
        classes, ways = self.seen.shape[1], self.unseen.shape[1]
        seen_weights, seen_occurring = ausuc.class_weights(seen, 0, classes)
        unseen_weights, unseen_occurring = ausuc.class_weights(unseen, classes, ways)
        share = seen_occurring / classes * unseen_occurring / ways
        return ausuc.curve(self.outcome, seen_weights, unseen_weights), share

    def map(self) -> dict[str, torch.Tensor]:
        """MAP measures of the batch of one."""
        labels, th, classes = torch.from_numpy(self.labels)[None], self.th, self.seen.shape[1]
        seen, unseen = torch.from_numpy(self.seen)[None, :th], torch.from_numpy(self.unseen)[None, th:]
        return map_measures(seen, unseen, labels[:, :th], labels[:, th:] - classes)


def golden(case: str, name: str) -> np.ndarray:
    return GOLDEN[f"{case}__{name}"]


def golden_task(case: str) -> Task:
    return Task(*(golden(case, name) for name in ("logits_s", "logits_u", "label")), th=int(golden(case, "th")))


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    """Small tasks with many ties, absent classes and, at times, nothing right."""
    classes, ways = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    seen_queries, unseen_queries = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    values = st.integers(-3, 3).map(lambda value: value / 2)
    shape = (seen_queries + unseen_queries, classes + ways)
    logits = draw(hnp.arrays(np.float32, shape, elements=values))
    seen_labels = draw(hnp.arrays(np.int64, seen_queries, elements=st.integers(0, classes - 1)))
    unseen_labels = draw(hnp.arrays(np.int64, unseen_queries, elements=st.integers(classes, classes + ways - 1)))
    return Task(logits[:, :classes], logits[:, classes:], np.concatenate([seen_labels, unseen_labels]), seen_queries)


@settings(max_examples=150, deadline=None)
@given(task=tasks(), bias=st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 2.0]))
def test_accuracies_equal_plain_loops(task: Task, bias: float) -> None:
    expected = brute_force.measures(task.seen, task.unseen, task.labels, task.th, bias)
    found = measures(task.outcome, bias)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].item() == pytest.approx(100 * value, abs=1e-9), name


@settings(max_examples=150, deadline=None)
@given(task=tasks())
def test_the_curve_and_its_area_equal_a_walk_over_all_biases(task: Task) -> None:
    points, _ = task.curve()
    expected = brute_force.curve(task.seen, task.unseen, task.labels, task.th)
    found = list(zip(points.unseen_TP[0].tolist(), points.seen_TP[0].tolist(), strict=True))
    distinct = [point for place, point in enumerate(found) if place == 0 or point != found[place - 1]]
    # Points where nothing changes are no corner of either list.
    corners = [point for place, point in enumerate(expected) if place == 0 or point != expected[place - 1]]
    assert np.allclose(distinct, corners, atol=1e-12)
    assert ausuc.area(points).item() == pytest.approx(brute_force.area(expected), abs=1e-12)
    assert 0 <= ausuc.area(points).item() <= 1 + 1e-12


@settings(max_examples=60, deadline=None)
@given(task=tasks())
def test_a_resampled_curve_lies_on_the_curve(task: Task) -> None:
    points, _ = task.curve()
    grid = torch.linspace(0, 1, 41, dtype=torch.float64)
    sampled = ausuc.resample(points, grid)[0]
    unseen, seen = points.unseen_TP[0].numpy(), points.seen_TP[0].numpy()
    for at, value in zip(grid.tolist(), sampled.tolist(), strict=True):
        if at > unseen[-1]:
            assert value == 0
            continue
        after = int(np.flatnonzero(unseen >= at)[0])  # of several points above each other the first, highest one
        before = max(after - 1, 0)
        share = (at - unseen[before]) / (unseen[after] - unseen[before]) if after else 1.0
        assert value == pytest.approx(seen[before] + share * (seen[after] - seen[before]), abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(task=tasks())
def test_map_equals_average_precision_by_its_definition(task: Task) -> None:
    joint = np.concatenate([task.seen, task.unseen], axis=1)
    seen = brute_force.mean_average_precision(joint[: task.th], task.labels[: task.th])
    unseen = brute_force.mean_average_precision(joint[task.th :], task.labels[task.th :])
    expected = {"map_s": seen, "map_u": unseen, "map_hm": brute_force.harmonic(seen, unseen)}
    for name, value in task.map().items():
        assert value.item() == pytest.approx(100 * expected[name], abs=1e-9), name


@settings(max_examples=60, deadline=None)
@given(task=tasks())
def test_confidence_is_the_largest_joint_probability_of_the_own_label_set(task: Task) -> None:
    joint = np.exp(np.concatenate([task.seen, task.unseen], axis=1).astype(np.float64))
    probability = joint / joint.sum(axis=1, keepdims=True)
    classes = task.seen.shape[1]
    found = confidences(task.scores, task.th)
    assert found["conf_seen"].item() == pytest.approx(
        100 * probability[: task.th, :classes].max(axis=1).mean(), rel=1e-5
    )
    assert found["conf_unseen"].item() == pytest.approx(
        100 * probability[task.th :, classes:].max(axis=1).mean(), rel=1e-5
    )


@settings(max_examples=60, deadline=None)
@given(task=tasks(), bias=st.floats(-3, 3, width=32))
def test_invariants_of_the_measures(task: Task, bias: float) -> None:
    found = {name: value.item() for name, value in measures(task.outcome, bias).items()}
    assert all(0 <= value <= 100 + 1e-9 for value in found.values())
    assert found["s_su"] <= found["s_s"] + 1e-9 and found["u_su"] <= found["u_u"] + 1e-9
    assert min(found["s_su"], found["u_su"]) - 1e-9 <= found["hm"] <= max(found["s_su"], found["u_su"]) + 1e-9
    if bias >= 0:
        assert found["cal_s_su"] <= found["s_su"] and found["cal_u_su"] >= found["u_su"]


@settings(max_examples=60, deadline=None)
@given(several=st.lists(st.integers(0, 2**31), min_size=1, max_size=4))
def test_the_bias_is_the_best_of_all_biases(several: list[int]) -> None:
    batch = random_outcome(several)
    best = harmonic(*joint_accuracies(batch, best_bias(batch))).mean()
    margins = batch.margin_TQ.flatten().unique()
    between = torch.cat([margins, (margins[1:] + margins[:-1]) / 2, margins[:1] - 1, margins[-1:] + 1])
    tried = [harmonic(*joint_accuracies(batch, float(bias))).mean() for bias in between]
    assert best.item() == pytest.approx(max(tried).item(), abs=1e-9)


def random_outcome(seeds: list[int], queries: int = 12) -> QueryOutcomes:
    """A task per seed, with margins on a coarse grid so that they tie within and across tasks."""
    margins, rights = [], []
    for seed in seeds:
        random = torch.Generator().manual_seed(seed)
        margins.append(torch.randint(-6, 7, (2 * queries,), generator=random) / 4)
        rights.append(torch.rand(2 * queries, generator=random) < 0.5)
    labels = torch.zeros(len(seeds), 2 * queries, dtype=torch.int64)
    return QueryOutcomes(torch.stack(margins), torch.stack(rights), labels, queries)


def test_without_any_right_answer_the_bias_is_zero() -> None:
    batch = random_outcome([1, 2])
    nothing = QueryOutcomes(batch.margin_TQ, torch.zeros_like(batch.right_TQ), batch.labels_TQ, batch.seen_queries)
    assert best_bias(nothing) == 0.0
    one_margin = QueryOutcomes(torch.ones_like(batch.margin_TQ), batch.right_TQ, batch.labels_TQ, batch.seen_queries)
    assert best_bias(one_margin) == 0.0


@pytest.mark.parametrize("case", CASES)
def test_accuracies_equal_the_released_code(case: str) -> None:
    task = golden_task(case)
    for place, bias in enumerate(golden(case, "bias_values").tolist()):
        found = measures(task.outcome, bias)
        assert found["cal_acc"].item() == pytest.approx(100 * golden(case, "acc")[place], abs=1e-4)
        for name, value in zip(("cal_hm", "cal_s_su", "cal_u_su"), golden(case, "hm")[place], strict=True):
            assert found[name].item() == pytest.approx(value, abs=1e-4), (name, bias)
        delta = (found["s_s"] - found["cal_s_su"] + found["u_u"] - found["cal_u_su"]) / 2
        assert delta.item() == pytest.approx(golden(case, "delta")[place][1], abs=1e-4)
    assert measures(task.outcome, 0.0)["delta"].item() == pytest.approx(golden(case, "delta")[0][1], abs=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_the_curve_equals_the_released_one_up_to_absent_classes(case: str) -> None:
    points, share = golden_task(case).curve()
    assert (ausuc.area(points) * share).item() == pytest.approx(float(golden(case, "ausuc")), abs=1e-9)
    expected = golden(case, "ausuc_curve")
    seen_share = len(set(golden(case, "label")[: golden(case, "th")].tolist())) / float(golden(case, "nbase"))
    found = np.unique(np.stack([points.seen_TP[0] * seen_share, points.unseen_TP[0] * share / seen_share], 1), axis=0)
    assert np.allclose(np.unique(expected.round(9), axis=0), np.unique(found.round(9), axis=0), atol=1e-8)


@pytest.mark.parametrize("case", CASES)
def test_map_equals_the_released_code(case: str) -> None:
    found = golden_task(case).map()
    for place in range(len(golden(case, "bias_values"))):  # ranks do not change with the bias
        for name, value in zip(("map_hm", "map_s", "map_u"), golden(case, "map")[place], strict=True):
            assert found[name].item() == pytest.approx(100 * value, abs=1e-4), name


def test_absent_classes_lower_the_released_area_only() -> None:
    """All correct with 3 of 10 seen classes present: 1 for ours, 0.3 in the released definition."""
    labels = np.array([0, 1, 2, 10, 11])
    logits = np.eye(12, dtype=np.float32)[labels]
    points, share = Task(logits[:, :10], logits[:, 10:], labels, th=3).curve()
    assert ausuc.area(points).item() == pytest.approx(1.0)
    assert (ausuc.area(points) * share).item() == pytest.approx(0.3)


def test_batches_give_what_single_tasks_give() -> None:
    random = np.random.default_rng(3)
    single = []
    for _ in range(7):
        logits = random.normal(size=(20, 9)).astype(np.float32).round(1)
        labels = np.concatenate([random.integers(0, 6, 10), random.integers(6, 9, 10)])
        single.append(Task(logits[:, :6], logits[:, 6:], labels, 10))
    parts = [task.outcome for task in single]
    batch = QueryOutcomes(
        *(torch.cat([getattr(part, name) for part in parts]) for name in ("margin_TQ", "right_TQ", "labels_TQ")), 10
    )
    together = measures(batch, 0.3)
    for place, task in enumerate(single):
        for name, values in measures(task.outcome, 0.3).items():
            assert torch.equal(values[0], together[name][place]), name
