"""CASTLE, aCASTLE and CASTLE⁻: the batched computations against plain ones, and the options' meaning."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from repro.data.seeding import generator
from repro.errors import BadInput
from repro.methods.acastle import ACastle
from repro.methods.base import EmbeddedBatch, GatheredScorer, Pool, TaskBatch
from repro.methods.castle import Castle
from repro.methods.castle_minus import CastleMinus
from repro.methods.shared.chunks import mean_over_chunks
from repro.methods.shared.swapping import swapped_cross_entropy
from repro.methods.shared.synthesis import draw_class_sets
from tests.methods.synthetic import ScaledIdentity, World, embed, train
from tools.benchmarks.heads import example, reference_loss

BOTH = pytest.mark.parametrize("method_class", [Castle, ACastle])
WORLD = World.make(seen=8, unseen=6, dim=6)


@BOTH
@pytest.mark.parametrize("shot", [1, 5])
@pytest.mark.parametrize(("seen", "classes"), [(12, 7), (7, 7)], ids=["some sampled", "all sampled"])
def test_the_batched_head_equals_the_released_formulation(
    method_class: type, shot: int, seen: int, classes: int
) -> None:
    method, batch = example(method_class, tasks=37, dim=32, seen=seen, classes=classes, queries=19, shot=shot)
    learns = [batch.support_TCKD, batch.free_BD, *method.parameters()]
    ours = method.loss(batch, generator(0, "tasks"))
    reference = reference_loss(method, batch, generator(0, "tasks"))
    torch.testing.assert_close(ours, reference, rtol=1e-5, atol=1e-5)
    for our_gradient, reference_gradient in zip(
        torch.autograd.grad(ours, learns), torch.autograd.grad(reference, learns), strict=True
    ):
        torch.testing.assert_close(our_gradient, reference_gradient, rtol=1e-5, atol=1e-5)


@BOTH
def test_the_loss_needs_no_gradient_mode(method_class: type) -> None:
    method, batch = example(method_class, tasks=20, dim=16, seen=9, classes=6, queries=5)
    with torch.no_grad():
        silent = method.loss(batch, generator(0, "tasks"))
    torch.testing.assert_close(silent, method.loss(batch, generator(0, "tasks")).detach())


@pytest.mark.parametrize("size", [1.0, 300.0], ids=["usual", "huge"])
def test_swapped_cross_entropy_equals_writing_every_joint_classifier_out(size: float) -> None:
    random = generator(0, "logits")
    tasks_TW = draw_class_sets(6, 10, 3, random)
    classes_C = torch.randperm(9, generator=random)[:6]
    labels_B = torch.randint(9, (8,), generator=random)
    seen_BS = (size * torch.randn(8, 9, generator=random)).requires_grad_()
    new_TWB = (size * torch.randn(10, 3, 8, generator=random)).requires_grad_()
    ours = swapped_cross_entropy(seen_BS, new_TWB, tasks_TW, classes_C, labels_B)
    losses = []
    for task_W, new_WB in zip(tasks_TW, new_TWB, strict=True):
        joint_BS = seen_BS.clone()
        joint_BS[:, classes_C[task_W]] = new_WB.T
        losses.append(F.cross_entropy(joint_BS, labels_B))
    expected = torch.stack(losses).mean()
    torch.testing.assert_close(ours, expected)
    for gradient, expected_gradient in zip(
        torch.autograd.grad(ours, (seen_BS, new_TWB)), torch.autograd.grad(expected, (seen_BS, new_TWB)), strict=True
    ):
        assert gradient.isfinite().all()
        torch.testing.assert_close(gradient, expected_gradient)


def test_the_mean_over_chunks_is_the_mean_and_so_is_its_gradient() -> None:
    random = generator(0, "chunks")
    tasks, weight = torch.randn(7, 3, generator=random), torch.randn(3, generator=random, requires_grad=True)
    fixed = torch.randn(3, generator=random)

    def loss_of(some: torch.Tensor, weight: torch.Tensor, fixed: torch.Tensor) -> torch.Tensor:
        return ((some @ (weight * fixed)) ** 2).mean()

    chunked, whole = mean_over_chunks(loss_of, tasks, 3, weight, fixed), loss_of(tasks, weight, fixed)
    torch.testing.assert_close(chunked, whole)
    (2 * chunked).backward()
    torch.testing.assert_close(weight.grad, torch.autograd.grad(2 * whole, weight)[0])


def test_tasks_are_distinct_classes_and_all_of_them_where_fewer() -> None:
    tasks_TW = draw_class_sets(6, 500, 5, generator(0, "tasks"))
    assert all(len(set(task)) == 5 for task in tasks_TW.tolist())
    assert set(tasks_TW.flatten().tolist()) == set(range(6))
    assert draw_class_sets(3, 2, 5, generator(0, "tasks")).shape == (2, 3)


@BOTH
def test_without_bases_it_is_castle_minus(method_class: type) -> None:
    torch.manual_seed(0)
    method = WORLD.ready(method_class(nn.Identity(), WORLD.dim, WORLD.seen, ratio=0))
    minus = WORLD.ready(CastleMinus(nn.Identity(), WORLD.dim, WORLD.seen))
    support_TWKD, queries_TQD, _ = WORLD.tasks()
    for ours, expected in zip(
        (*method.joint_logits(support_TWKD, queries_TQD), method.unseen_logits(support_TWKD, queries_TQD)),
        (*minus.joint_logits(support_TWKD, queries_TQD), minus.unseen_logits(support_TWKD, queries_TQD)),
        strict=True,
    ):
        torch.testing.assert_close(ours, expected)
    batch = WORLD.batch(minus.batch_spec(2), 0)
    losses = [m.loss(batch, generator(0, "tasks")) for m in (method, minus)]
    torch.testing.assert_close(*losses)


@pytest.mark.parametrize("learns", [False, True])
def test_castle_minus_keeps_the_seen_classifiers_fixed_unless_asked(learns: bool) -> None:
    """The paper's "(fixed)" is the default."""
    options = {"train_seen_classifier": True} if learns else {}
    minus = WORLD.ready(CastleMinus(ScaledIdentity(WORLD.dim), WORLD.dim, WORLD.seen, classes=6, **options))
    before = minus.seen_weight_SD.detach().clone()
    train(minus, WORLD, steps=3, lr=0.1)
    assert torch.equal(minus.seen_weight_SD.detach(), before) == (not learns)
    assert not torch.equal(minus.backbone.gain_D.detach(), torch.ones(WORLD.dim))


def test_castle_minus_is_the_cosine_free_nearest_unit_prototype() -> None:
    minus = WORLD.ready(CastleMinus(nn.Identity(), WORLD.dim, WORLD.seen, temperature=0.5))
    support_TWKD, queries_TQD, _ = WORLD.tasks()
    unit_TWD = F.normalize(support_TWKD.mean(dim=2), dim=-1)
    expected = torch.einsum("tqd,twd->tqw", queries_TQD, unit_TWD) / 0.5
    torch.testing.assert_close(minus.joint_logits(support_TWKD, queries_TQD)[1], expected)


@BOTH
def test_post_average_is_the_mean_over_one_shot_syntheses(method_class: type) -> None:
    torch.manual_seed(0)
    post = WORLD.ready(method_class(nn.Identity(), WORLD.dim, WORLD.seen, average="post"))
    support_TWKD, _, _ = WORLD.tasks(shots=3)
    dictionary, seen_SD = post.synthesis.dictionary, post.seen_weight_SD
    extra = len(seen_SD) if method_class is ACastle else 0
    rows_TVWD = support_TWKD.transpose(1, 2)
    views = [
        dictionary.attend(torch.cat([seen_SD.expand(4, -1, -1)[:, :extra], rows_TWD], dim=1))
        for rows_TWD in rows_TVWD.unbind(dim=1)
    ]
    expected_TWD = F.normalize(torch.stack(views).mean(dim=0), dim=-1)[:, extra:]
    units_TDD = torch.eye(WORLD.dim).expand(4, -1, -1)
    torch.testing.assert_close(post.joint_logits(support_TWKD, units_TDD)[1], expected_TWD.mT)


@BOTH
@pytest.mark.parametrize("average", ["pre", "post"])
def test_a_step_of_training_sees_what_evaluation_computes(method_class: type, average: str) -> None:
    """One task of all classes: the loss is the cross-entropy of the joint logits, seen columns swapped out."""
    torch.manual_seed(0)
    options = {"classes": 4, "ways": 4, "classifiers": 1, "average": average, "temperature": 0.5}
    method = method_class(nn.Identity(), WORLD.dim, 4, **options).eval()
    batch = World.make(seen=4, unseen=1, dim=WORLD.dim).batch(method.batch_spec(3), 0)
    order_C = batch.labels_TC[0].argsort()
    logits_TBC = method.unseen_logits(batch.support_TCKD[:, order_C], batch.free_BD[None])
    expected = F.cross_entropy(logits_TBC[0], batch.free_labels_B)
    torch.testing.assert_close(method.loss(batch, generator(0, "tasks")), expected)


@BOTH
def test_the_seen_classifier_can_be_kept_as_pretrained(method_class: type) -> None:
    method = method_class(ScaledIdentity(6), 6, 8, train_seen_classifier=False, dictionary_lr_scale=10.0)
    groups = {group["name"]: group["lr_scale"] for group in method.parameter_groups()}
    assert groups == {"backbone": 1.0, "dictionary": 10.0}
    method.loss(embed(WORLD.batch(method.batch_spec(1), 0), method.backbone), generator(0, "tasks")).backward()
    assert method.seen_weight_SD.grad is None and method.backbone.gain_D.grad is not None


@BOTH
def test_dropout_acts_in_training_only_and_follows_the_generator(method_class: type) -> None:
    torch.manual_seed(0)
    method = WORLD.ready(method_class(nn.Identity(), WORLD.dim, WORLD.seen, dictionary="released"))
    batch = WORLD.batch(method.batch_spec(2), 0)
    plain = method.loss(batch, generator(0, "tasks"))
    method.train()
    first, again = (method.loss(batch, generator(0, "tasks")) for _ in range(2))
    assert torch.equal(first, again) and not torch.isclose(first, plain)
    method.synthesis.dropout = 0.0
    assert not torch.isclose(method.loss(batch, generator(0, "tasks")), plain)  # the released attention dropout


@BOTH
def test_training_lowers_the_loss(method_class: type) -> None:
    torch.manual_seed(0)
    options = {"classes": 6, "classifiers": 16, "queries": 32, "dropout": 0.1}
    before, after = train(method_class(ScaledIdentity(6), 6, 8, **options), WORLD)
    assert after < 0.8 * before


def test_the_temperatures_of_acastle_divide_where_they_should() -> None:
    def build(**options: float) -> ACastle:
        torch.manual_seed(0)
        return WORLD.ready(ACastle(nn.Identity(), WORLD.dim, WORLD.seen, **options))

    plain, warm = build(), build(temperature=2.0, training_temperature=1.0)
    support_TWKD, queries_TQD, _ = WORLD.tasks()
    for cold, halved in zip(
        plain.joint_logits(support_TWKD, queries_TQD), warm.joint_logits(support_TWKD, queries_TQD), strict=True
    ):
        torch.testing.assert_close(halved * 2, cold)
    few_shot = [method.unseen_logits(support_TWKD, queries_TQD) for method in (warm, plain)]
    torch.testing.assert_close(*few_shot)
    batch = WORLD.batch(plain.batch_spec(2), 0)
    torch.testing.assert_close(warm.loss(batch, generator(0, "t")), plain.loss(batch, generator(0, "t")))


@torch.no_grad()
@BOTH
@pytest.mark.parametrize(
    ("options", "dtype"),
    [
        ({}, torch.float32),
        ({"average": "post"}, torch.float32),
        ({"dictionary": "released"}, torch.float32),
        ({"dictionary": "released", "heads": 4}, torch.float32),
        # Scores in the thousands: their rounding alone moves single-precision weights, so compare in double.
        ({"score_scale": 0.01}, torch.float64),
    ],
    ids=["paper", "post", "released", "heads", "saturated"],
)
@pytest.mark.parametrize("room", ["table of unseen images", "support from seen classes", "no room for a table"])
def test_scorers_equal_the_method(
    method_class: type, options: dict, dtype: torch.dtype, room: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if room == "no room for a table":
        monkeypatch.setattr("repro.methods.shared.synthesis_scorers.TABLE_BYTES", 0)
    torch.manual_seed(0)
    dim, seen = 64, 20
    method = method_class(nn.Identity(), dim, seen, temperature=0.5, **options).eval().to(dtype)
    method.synthesis.dictionary.bases_MD.normal_()
    labels_N = torch.arange(seen + 8).repeat_interleave(12)
    pool = Pool(torch.randn(len(labels_N), dim, dtype=dtype).relu(), labels_N)
    first = 0 if room == "support from seen classes" else seen * 12
    tasks = TaskBatch(torch.randint(first, len(labels_N), (200, 5, 3)), torch.randint(len(labels_N), (200, 30)))
    ours, plain = method.scorer(pool), GatheredScorer(method, pool)
    scores, expected = ours(tasks), plain(tasks)
    close = {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(scores.best_seen_TQ, expected.best_seen_TQ, **close)
    torch.testing.assert_close(scores.unseen_TQW, expected.unseen_TQW, **close)
    torch.testing.assert_close(scores.seen_logits(30), expected.seen_logits(30), **close)
    torch.testing.assert_close(ours.unseen_logits(tasks), plain.unseen_logits(tasks), **close)


def test_impossible_options_are_refused() -> None:
    with pytest.raises(BadInput, match="unknown average 'mid'"):
        Castle(nn.Identity(), 4, 3, average="mid")
    with pytest.raises(BadInput, match="ratio -1"):
        Castle(nn.Identity(), 4, 3, ratio=-1)
    with pytest.raises(BadInput, match="dropout 1"):
        ACastle(nn.Identity(), 4, 3, dropout=1)


@pytest.mark.parametrize("kind", [Castle, ACastle, CastleMinus])
def test_gradients_repeat_to_the_bit_on_several_threads(kind: type[Castle] | type[ACastle] | type[CastleMinus]) -> None:
    torch.manual_seed(0)
    method = kind(ScaledIdentity(64), 64, 64)
    support_TCKD, free_BD = torch.randn(1, 24, 1, 64, requires_grad=True), torch.randn(128, 64)
    batch = EmbeddedBatch(support_TCKD, free_BD[:0], torch.arange(24)[None], free_BD, torch.randint(64, (128,)))

    def gradient() -> torch.Tensor:
        return torch.autograd.grad(method.loss(batch, generator(0, "tasks")), support_TCKD)[0]

    torch.set_num_threads(4)
    try:
        first = gradient()
        assert all(torch.equal(gradient(), first) for _ in range(20))
    finally:
        torch.set_num_threads(1)


def test_without_the_unified_objective_a_task_is_classified_among_its_own_classes_only() -> None:
    """Vanilla synthesis: the loss of every random task by itself, and nothing that the seen classifiers could learn."""
    options = {"classes": 6, "classifiers": 9, "ways": 3, "queries": 12, "temperature": 0.5, "unified": False}
    method = WORLD.ready(Castle(ScaledIdentity(WORLD.dim), WORLD.dim, WORLD.seen, **options))
    batch = WORLD.batch(method.batch_spec(2), 0)
    assert batch.query_TCQD.shape[1:3] == (6, 2) and len(batch.free_BD) == 0
    losses = []
    for task_W in draw_class_sets(6, 9, 3, generator(0, "tasks")):
        queries_QD = batch.query_TCQD[0, task_W].flatten(0, 1)
        logits_QW = method.unseen_logits(batch.support_TCKD[:, task_W], queries_QD.unsqueeze(0))[0]
        losses.append(F.cross_entropy(logits_QW, torch.arange(3).repeat_interleave(2)))
    torch.testing.assert_close(method.loss(batch, generator(0, "tasks")), torch.stack(losses).mean())
    assert [group["name"] for group in method.parameter_groups()] == ["backbone", "dictionary"]
    before, after = train(method, WORLD, steps=40, lr=0.02)
    assert after < before
