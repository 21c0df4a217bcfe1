"""The batched protocol against a loop over tasks; equal bytes whatever the chunk; bad input named."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from repro.data.dataset import Dataset, open_dataset
from repro.data.episodes import Tasks, TaskSpec, draw_exemplars, draw_tasks
from repro.errors import BadInput
from repro.evaluation import bound as binding
from repro.evaluation import protocol
from repro.evaluation.bound import BoundTasks, TaskPool
from repro.evaluation.calibration import best_bias
from repro.evaluation.cell import Evaluation, evaluate_cell, mean_hm
from repro.evaluation.embed import Embedded, rows_needed
from repro.evaluation.metrics import harmonic, joint_accuracies
from repro.evaluation.protocol import few_shot, generalised, outcomes
from repro.methods.base import FixedSeen, GatheredScorer, Method, Pool
from repro.methods.castle import Castle
from repro.methods.mc_protonet import MulticlassProtoNet
from repro.methods.protonet import ProtoNet
from tests.conftest import write_tiny_dataset
from tests.evaluation import brute_force

CPU = torch.device("cpu")
DIM = 6
SPEC = TaskSpec("test", way=3, shot=2, tasks=37, query=4)


class Nearest(FixedSeen):
    """Dot products with fixed seen vectors and with the mean of the support."""

    def __init__(self, seen_classes: int) -> None:
        super().__init__()
        self.seen_classes = seen_classes
        self.seen_SD = torch.randn(seen_classes, DIM, generator=torch.Generator().manual_seed(1))

    def fixed_seen_logits(self, queries_ND: Tensor) -> Tensor:
        return queries_ND @ self.seen_SD.T

    def joint_unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        return queries_TQD @ support_TWKD.mean(dim=2).mT


class TaskDependent(Nearest):
    """The same with seen scores that depend on the task, and another answer to few-shot use."""

    few_shot_is_joint = False

    def joint_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> tuple[Tensor, Tensor]:
        seen_TQS, unseen_TQW = super().joint_logits(support_TWKD, queries_TQD)
        return seen_TQS + 0.1 * support_TWKD.sum(dim=(1, 2, 3))[:, None, None], unseen_TQW

    def unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        return -torch.cdist(queries_TQD, support_TWKD.mean(dim=2))

    def scorer(self, pool: Pool) -> GatheredScorer:
        return GatheredScorer(self, pool)


def random_embeddings(dataset: Dataset, *more: Tensor) -> Embedded:
    """Noisy class vectors for everything but most training images."""
    rows = rows_needed(dataset, *more)
    random = torch.Generator().manual_seed(0)
    classes = 1.5 * torch.randn(len(dataset.header.classes), DIM, generator=random)
    everything = classes[dataset.labels_N] + torch.randn(len(dataset.labels_N), DIM, generator=random)
    return Embedded(rows, everything[rows], "model")


@pytest.fixture(scope="module")
def embedded(tiny: Dataset) -> Embedded:
    return random_embeddings(tiny)


def bind(
    dataset: Dataset, embedded: Embedded, tasks: Tasks, limit: int | None = None, memory_mb: int = 256
) -> BoundTasks:
    return BoundTasks(tasks, TaskPool(tasks.spec.split, embedded, dataset, CPU, memory_mb), limit)


def by_loop(method: Method, dataset: Dataset, embedded: Embedded, tasks: Tasks, bias: float) -> dict[str, list[float]]:
    """Every measure, one task at a time, as fractions."""
    found: dict[str, list[float]] = {}
    seen_classes = dataset.seen_classes
    for t in range(tasks.spec.tasks):
        queries = torch.cat([tasks.seen_TQ[t], tasks.query_TWQ[t].flatten()]).long()
        support = embedded.of(tasks.support_TWK[t].long())[None]
        seen, unseen = (x[0].numpy() for x in method.joint_logits(support, embedded.of(queries)[None]))
        way_of = {int(label): seen_classes + way for way, label in enumerate(tasks.classes_TW[t])}
        labels = np.array([way_of.get(int(label), int(label)) for label in dataset.labels_N[queries]])
        th = tasks.seen_TQ.shape[1]
        points = brute_force.curve(seen, unseen, labels, th)
        joint = np.concatenate([seen, unseen], axis=1)
        map_s = brute_force.mean_average_precision(joint[:th], labels[:th])
        map_u = brute_force.mean_average_precision(joint[th:], labels[th:])
        occurring = len(set(labels[:th].tolist())) / seen_classes
        probability = np.exp(joint.astype(np.float64)) / np.exp(joint.astype(np.float64)).sum(axis=1, keepdims=True)
        row = brute_force.measures(seen, unseen, labels, th, bias) | {
            "ausuc": brute_force.area(points),
            "ausuc_released": brute_force.area(points) * occurring,
            "map_s": map_s,
            "map_u": map_u,
            "map_hm": brute_force.harmonic(map_s, map_u),
            "conf_seen": probability[:th, :seen_classes].max(axis=1).mean(),
            "conf_unseen": probability[th:, seen_classes:].max(axis=1).mean(),
        }
        row["conf_ratio"] = row["conf_seen"] / row["conf_unseen"] / 100  # the others are fractions of 100
        for name, value in row.items():
            found.setdefault(name, []).append(value)
    return found


@pytest.mark.parametrize("kind", [Nearest, TaskDependent])
def test_every_measure_equals_a_loop_over_tasks(tiny: Dataset, embedded: Embedded, kind: type[Nearest]) -> None:
    method, tasks = kind(tiny.seen_classes), draw_tasks(tiny, SPEC, 0)
    expected = by_loop(method, tiny, embedded, tasks, bias=0.75)
    bound = bind(tiny, embedded, tasks)
    found = generalised(method.scorer(bound.pool), bound, 0.75)
    assert found.values.keys() == expected.keys()
    for name, values in expected.items():
        assert np.allclose(found.values[name], 100 * np.array(values), atol=2e-4), name
    assert found.values["hm"].std() > 1  # the tasks differ, so the comparison says something


@pytest.mark.parametrize("kind", [Nearest, TaskDependent])
def test_few_shot_use_stays_in_the_tasks_own_classes(tiny: Dataset, embedded: Embedded, kind: type[Nearest]) -> None:
    method, tasks = kind(tiny.seen_classes), draw_tasks(tiny, SPEC, 0)
    bound = bind(tiny, embedded, tasks)
    found = few_shot(method.scorer(bound.pool), bound).values["u_u"]
    for t in range(SPEC.tasks):
        queries = embedded.of(tasks.query_TWQ[t].flatten().long())
        logits = method.unseen_logits(embedded.of(tasks.support_TWK[t].long())[None], queries[None])[0]
        right = logits.argmax(dim=1) == torch.arange(SPEC.way).repeat_interleave(SPEC.query)
        assert found[t].item() == pytest.approx(100 * right.double().mean().item())


def test_the_mean_curve_has_the_mean_area(tiny: Dataset, embedded: Embedded) -> None:
    bound = bind(tiny, embedded, draw_tasks(tiny, replace(SPEC, tasks=400), 0))
    found = generalised(Nearest(tiny.seen_classes).scorer(bound.pool), bound, 0.0)
    assert found.curve is not None
    unseen, seen = (found.curve / 100).unbind(dim=1)
    assert 100 * torch.trapezoid(seen, unseen).item() == pytest.approx(found.values["ausuc"].mean().item(), abs=0.6)
    assert (seen.diff() <= 1e-12).all() and unseen[0] == 0 and unseen[-1] == 1


@pytest.mark.parametrize("memory_mb", [0, 1, 3, 4096])
def test_results_are_the_same_bytes_whatever_the_chunk(
    tiny: Dataset, embedded: Embedded, memory_mb: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(binding.BLOCK_QUERIES, "cpu", 7 * 24)
    method = Castle(nn.Identity(), DIM, tiny.seen_classes).eval()
    tasks = draw_tasks(tiny, replace(SPEC, tasks=501), 0)
    bounds = [bind(tiny, embedded, tasks, memory_mb=memory) for memory in (256, memory_mb)]
    assert bounds[0].block == 7
    with torch.no_grad():
        first, second = (generalised(method.scorer(bound.pool), bound, 0.5) for bound in bounds)
    assert first.curve is not None and second.curve is not None and torch.equal(first.curve, second.curve)
    for name, values in first.values.items():
        assert values.numpy().tobytes() == second.values[name].numpy().tobytes(), name


def test_a_tasks_result_does_not_depend_on_how_many_there_are(tiny: Dataset, embedded: Embedded) -> None:
    method = Castle(nn.Identity(), DIM, tiny.seen_classes).eval()
    tasks = draw_tasks(tiny, replace(SPEC, tasks=501), 0)
    with torch.no_grad():
        whole, some = (
            generalised(method.scorer(bound.pool), bound, 0.5)
            for bound in (bind(tiny, embedded, tasks), bind(tiny, embedded, tasks, limit=33))
        )
    for name, values in some.values.items():
        assert len(values) == 33 and torch.equal(values, whole.values[name][:33]), name


def test_memory_bounds_what_is_held_at_once(tiny: Dataset, embedded: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(binding.BLOCK_QUERIES, "cpu", 10 * 24)
    held: list[int] = []
    original = protocol.measures

    def watched(result, bias):
        held.append(len(result.margin_TQ))
        return original(result, bias)

    monkeypatch.setattr(protocol, "measures", watched)
    sizes: list[int] = []

    class Watched(GatheredScorer):
        def __call__(self, tasks):
            sizes.append(len(tasks.queries_TQ))
            return super().__call__(tasks)

    bound = bind(tiny, embedded, draw_tasks(tiny, replace(SPEC, tasks=3000), 0), memory_mb=2)
    done: list[int] = []
    generalised(Watched(Nearest(tiny.seen_classes), bound.pool), bound, 0.0, progress=done.append)
    assert set(sizes) == {bound.block}  # the last block is filled up
    assert max(held) * (16 * 8 * 24 + 8 * 8 * protocol.CURVE_POINTS) <= 2 * 2**20
    assert sum(held) == sum(done) == 3000


def evaluated(dataset: Dataset, method: Method, **options) -> Evaluation:
    seen = draw_tasks(dataset, TaskSpec("seen", dataset.seen_classes, 2, 11, 5), 0)
    test = {way: draw_tasks(dataset, replace(SPEC, way=way), 0) for way in (2, 3)}
    val = {way: draw_tasks(dataset, replace(SPEC, split="val", way=way, tasks=50), 0) for way in (2, 3)}
    embedded = random_embeddings(dataset, seen.support_TWK)
    return evaluate_cell(method, embedded, dataset, test, val, few_shot_ways=(3,), seen=seen, **options)


def test_every_protocol_keeps_within_the_memory(tiny: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, int]] = []
    chunks = BoundTasks.chunks

    def watched(bound):
        told.append((bound.spec.split, bound.memory_mb))
        return chunks(bound)

    monkeypatch.setattr(BoundTasks, "chunks", watched)
    evaluated(tiny, TaskDependent(tiny.seen_classes), memory_mb=3)
    # Two ways of joint tasks with their calibration, one of few-shot tasks, and the seen classes.
    assert sorted(told) == [("seen", 3), *[("test", 3)] * 3, *[("val", 3)] * 2]


@pytest.mark.parametrize("kind", [Nearest, TaskDependent])
def test_few_shot_tasks_are_scored_once_more_only_where_the_scores_differ(tiny: Dataset, kind: type[Nearest]) -> None:
    method, done, asked = kind(tiny.seen_classes), [], []
    scorer_of = method.scorer

    def watched(pool: Pool) -> GatheredScorer:
        scorer = scorer_of(pool)
        scores = scorer.unseen_logits
        scorer.unseen_logits = lambda tasks: asked.append(tasks.support_TWK.shape[1]) or scores(tasks)
        return scorer

    method.scorer = watched
    found = evaluated(tiny, method, progress=done.append)
    assert (3 in asked) == (kind is TaskDependent)
    assert sum(done) == len(found.columns["task"]) + 2 * 50  # and two lists that calibrate
    bound = bind(tiny, random_embeddings(tiny), draw_tasks(tiny, SPEC, 0))
    rows = found.columns["protocol"] == "fsl"
    expected = few_shot(scorer_of(bound.pool), bound).values["u_u"]
    np.testing.assert_array_equal(found.columns["u_u"][rows], expected.numpy().astype(np.float32))


def test_a_cell_is_tidy_and_calibrated_on_validation(tiny: Dataset, embedded: Embedded) -> None:
    method = Nearest(tiny.seen_classes)
    found = evaluated(tiny, method)
    groups = list(zip(found.columns["protocol"], found.columns["way"].tolist(), strict=True))
    assert [(group, groups.count(group)) for group in dict.fromkeys(groups)] == [
        (("gfsl", 2), 37),
        (("gfsl", 3), 37),
        (("fsl", 3), 37),
        (("seen", 8), 11),
    ]
    assert found.tasks.keys() == {("gfsl", 2), ("gfsl", 3), ("fsl", 3), ("seen", 8)}
    is_fsl = found.columns["protocol"] == "fsl"
    assert np.isnan(found.columns["hm"][is_fsl]).all() and not np.isnan(found.columns["u_u"][is_fsl]).any()
    # The few-shot answer of this method is the joint one's.
    joint = (found.columns["protocol"] == "gfsl") & (found.columns["way"] == 3)
    assert np.array_equal(found.columns["u_u"][is_fsl], found.columns["u_u"][joint])
    val = bind(tiny, embedded, draw_tasks(tiny, replace(SPEC, split="val", tasks=50), 0))
    assert found.biases["gfsl", 3] == best_bias(outcomes(method.scorer(val.pool), val))
    assert found.columns["cal_hm"][joint].mean() > found.columns["hm"][joint].mean()
    assert len(found.curves["gfsl", 2]) == protocol.CURVE_POINTS


def test_classifiers_of_seen_classes_are_compared_on_the_same_images(tiny: Dataset) -> None:
    found = evaluated(tiny, Nearest(tiny.seen_classes))
    tasks = draw_tasks(tiny, TaskSpec("seen", tiny.seen_classes, 2, 11, 5), 0)
    embedded = random_embeddings(tiny, tasks.support_TWK)
    rows = found.columns["protocol"] == "seen"
    assert "proto_s" not in found.columns  # prototypes of its embedding would not be the trained ProtoNet's
    for t in range(11):
        queries = embedded.of(tasks.query_TWQ[t].flatten().long())
        prototypes = embedded.of(tasks.support_TWK[t].long()).mean(dim=1)
        truth = torch.arange(8).repeat_interleave(5)
        many = (queries @ Nearest(8).seen_SD.T)[:, tasks.classes_TW[t].long()]
        for name, scores in {"syn_s": queries @ prototypes.T, "many_s": many}.items():
            right = 100 * (scores.argmax(dim=1) == truth).double().mean().item()
            assert found.columns[name][rows][t] == pytest.approx(right), name


def test_prototypes_of_seen_classes_are_those_of_protonet_itself(tiny: Dataset) -> None:
    """Its own embedding, the K support images of the task, Euclidean distances."""
    method = ProtoNet(nn.Identity(), DIM, tiny.seen_classes)
    method.remember(torch.randn(8, 3, DIM))
    found = evaluated(tiny, method)
    tasks = draw_tasks(tiny, TaskSpec("seen", tiny.seen_classes, 2, 11, 5), 0)
    embedded = random_embeddings(tiny, tasks.support_TWK)
    rows = found.columns["protocol"] == "seen"
    assert "syn_s" not in found.columns
    for t in range(11):
        queries = embedded.of(tasks.query_TWQ[t].flatten().long())
        nearest = torch.cdist(queries, embedded.of(tasks.support_TWK[t].long()).mean(dim=1)).argmin(dim=1)
        right = 100 * (nearest == torch.arange(8).repeat_interleave(5)).double().mean().item()
        assert found.columns["proto_s"][rows][t] == pytest.approx(right)


def test_a_second_run_gives_the_same_bytes(tiny: Dataset) -> None:
    torch.manual_seed(0)
    method = Castle(nn.Identity(), DIM, tiny.seen_classes)
    first, second = evaluated(tiny, method), evaluated(tiny, method)
    assert first.tasks == second.tasks and first.biases == second.biases and first.curves == second.curves
    assert list(first.columns["protocol"]) == list(second.columns["protocol"])
    for name in first.columns.keys() - {"protocol"}:
        assert first.columns[name].tobytes() == second.columns[name].tobytes(), name


def test_a_limit_takes_the_first_tasks_and_says_so(tiny: Dataset) -> None:
    limited, whole = evaluated(tiny, Nearest(8), limit=5), evaluated(tiny, Nearest(8))
    assert limited.tasks["gfsl", 3] == f"{whole.tasks['gfsl', 3]}[:5]"
    assert limited.columns["task"].max() == 4
    assert np.array_equal(limited.columns["hm"][:5], whole.columns["hm"][:5])


def test_model_selection_reads_the_mean_of_hm(tiny: Dataset, embedded: Embedded) -> None:
    tasks = draw_tasks(tiny, replace(SPEC, split="val"), 0)
    expected = by_loop(Nearest(8), tiny, embedded, tasks, 0.0)["hm"]
    assert mean_hm(Nearest(8), embedded, tiny, tasks) == pytest.approx(100 * np.mean(expected))


def test_model_selection_of_scores_that_never_meet_is_calibrated(tiny: Dataset, embedded: Embedded) -> None:
    tasks = draw_tasks(tiny, replace(SPEC, split="val"), 0)
    method = MulticlassProtoNet(nn.Identity(), DIM, 8)
    result = outcomes(method.scorer(TaskPool("val", embedded, tiny, CPU).pool), bind(tiny, embedded, tasks))
    calibrated = 100 * float(harmonic(*joint_accuracies(result, best_bias(result))).mean())
    assert harmonic(*joint_accuracies(result)).max() == 0.0
    assert calibrated > 1.0
    assert mean_hm(method, embedded, tiny, tasks) == pytest.approx(calibrated)


def test_domains_work_end_to_end(tiny_domains: Dataset) -> None:
    found = evaluated(tiny_domains, Nearest(tiny_domains.seen_classes))
    assert 0 < found.columns["hm"][found.columns["protocol"] == "gfsl"].mean() < 100


def test_tasks_of_another_dataset_are_refused(tiny: Dataset, embedded: Embedded, tmp_path) -> None:
    write_tiny_dataset(tmp_path / "other", test=9, per_class=30)
    foreign = draw_tasks(open_dataset(tmp_path / "other"), SPEC, 0)
    with pytest.raises(BadInput, match="is not of these images; draw tasks for this dataset"):
        bind(tiny, embedded, foreign)
    with pytest.raises(BadInput, match="is not of these images"):
        BoundTasks(draw_tasks(tiny, SPEC, 0), TaskPool("val", embedded, tiny, CPU))


def test_scores_that_are_no_numbers_are_refused(tiny: Dataset, embedded: Embedded) -> None:
    method = Nearest(tiny.seen_classes)
    method.seen_SD[0, 0] = torch.nan
    bound = bind(tiny, embedded, draw_tasks(tiny, SPEC, 0))
    with pytest.raises(BadInput, match="not a number; the training diverged"):
        generalised(method.scorer(bound.pool), bound, 0.0)


def test_exemplars_are_distinct_training_images_of_every_seen_class(tiny: Dataset) -> None:
    rows_SM = draw_exemplars(tiny, 24, seed=0)
    assert torch.equal(rows_SM.flatten().sort().values, tiny.roles["train"])
    assert (tiny.labels_N[rows_SM] == torch.arange(8)[:, None]).all()
    assert torch.equal(draw_exemplars(tiny, 25, seed=0), rows_SM)  # no more than every class has
    assert torch.equal(draw_exemplars(tiny, 3, seed=0), rows_SM[:, :3])
