"""One suite over every method: a new file in repro/methods joins by itself."""

import inspect
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from repro.data.seeding import generator
from repro.methods.base import FixedSeen, Method, Pool, TaskBatch
from repro.methods.registry import method_class, method_names
from repro.trained.folders import EXEMPLARS
from tests.methods.synthetic import ScaledIdentity, World, embed

WORLD = World.make(seen=8, unseen=6, dim=6)
SHOTS, WAYS, TASKS, QUERIES = 2, 3, 4, 7
# Small enough for eight seen classes; a method takes those options that it has.
SMALL = {"classes": 6, "classifiers": 9, "queries": 11, "steps": 3, "free": 11}
# Its support is the pool itself, so its scorer must not equal what the few shots alone would give.
POOL_IS_SUPPORT = {"upper_bound"}
every_method = pytest.mark.parametrize("name", method_names())


def tiny(name: str) -> Method:
    """The method on eight seen classes in double precision, weights seeded, memory filled, in evaluation mode."""
    torch.manual_seed(0)
    chosen = method_class(name)
    known = inspect.signature(chosen).parameters
    options = {key: value for key, value in SMALL.items() if key in known}
    return WORLD.ready(chosen(ScaledIdentity(WORLD.dim), WORLD.dim, WORLD.seen, **options)).double()


def tasks() -> tuple[Tensor, Tensor]:
    support_TWKD, queries_TQD, _ = WORLD.tasks(TASKS, WAYS, SHOTS, QUERIES)
    return support_TWKD.double(), queries_TQD.double()


def trained(name: str) -> tuple[Method, Tensor]:
    """The method in training mode after one backward pass, and its loss; skips where nothing is trained.

    Weights are moved a little first: a branch that starts at zero would hide what lies before it.
    """
    method = tiny(name).train()
    spec = method.batch_spec(SHOTS)
    if spec is None:
        pytest.skip("nothing to train after pre-training")
    random = generator(0, "move")
    with torch.no_grad():
        for parameter in method.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn(parameter.shape, generator=random), alpha=0.1)
    loss = method.loss(embed(_double(WORLD.batch(spec, 0)), method.backbone), generator(0, "loss"))
    loss.backward()
    return method, loss.detach()


def _double(batch):
    values = {key: value.double() if value.is_floating_point() else value for key, value in vars(batch).items()}
    return type(batch)(**values)


@every_method
def test_logits_have_a_column_per_seen_and_per_unseen_class(name: str) -> None:
    method, (support_TWKD, queries_TQD) = tiny(name), tasks()
    seen_TQS, unseen_TQW = method.joint_logits(support_TWKD, queries_TQD)
    assert seen_TQS.shape == (TASKS, QUERIES, WORLD.seen)
    assert unseen_TQW.shape == method.unseen_logits(support_TWKD, queries_TQD).shape == (TASKS, QUERIES, WAYS)
    assert seen_TQS.isfinite().all() and unseen_TQW.isfinite().all()


@every_method
def test_column_c_of_the_seen_logits_is_seen_class_c(name: str) -> None:
    """Noise-free images of the seen classes, in label order, are mostly recognised by a fair classifier."""
    method, (support_TWKD, _) = tiny(name), tasks()
    centres_TSD = WORLD.centres_CD[: WORLD.seen].double().expand(TASKS, -1, -1)
    seen_TSS, _ = method.joint_logits(support_TWKD, centres_TSD)
    right = seen_TSS.argmax(dim=-1) == torch.arange(WORLD.seen)
    assert right.double().mean() > 0.7


@every_method
def test_column_w_of_the_unseen_logits_is_way_w(name: str) -> None:
    method, (support_TWKD, _) = tiny(name), tasks()
    unseen_TWW = method.unseen_logits(support_TWKD, support_TWKD.mean(dim=2))
    right = unseen_TWW.argmax(dim=-1) == torch.arange(WAYS)
    assert right.double().mean() > 0.7


@every_method
def test_a_batch_of_tasks_equals_one_by_one(name: str) -> None:
    method, (support_TWKD, queries_TQD) = tiny(name), tasks()
    together = (*method.joint_logits(support_TWKD, queries_TQD), method.unseen_logits(support_TWKD, queries_TQD))
    for task in range(TASKS):
        support, queries = support_TWKD[task : task + 1], queries_TQD[task : task + 1]
        alone = (*method.joint_logits(support, queries), method.unseen_logits(support, queries))
        for all_tasks, one_task in zip(together, alone, strict=True):
            torch.testing.assert_close(all_tasks[task : task + 1], one_task, rtol=1e-8, atol=1e-8)


@every_method
def test_permuting_the_tail_classes_permutes_their_logits(name: str) -> None:
    method, (support_TWKD, queries_TQD) = tiny(name), tasks()
    order_W = torch.tensor([2, 0, 1])
    seen, unseen = method.joint_logits(support_TWKD, queries_TQD)
    seen_permuted, unseen_permuted = method.joint_logits(support_TWKD[:, order_W], queries_TQD)
    torch.testing.assert_close(seen_permuted, seen, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(unseen_permuted, unseen[..., order_W], rtol=1e-8, atol=1e-8)
    few_shot = method.unseen_logits(support_TWKD, queries_TQD)
    few_shot_permuted = method.unseen_logits(support_TWKD[:, order_W], queries_TQD)
    torch.testing.assert_close(few_shot_permuted, few_shot[..., order_W], rtol=1e-8, atol=1e-8)


@every_method
def test_a_method_says_whether_few_shot_use_takes_the_joint_scores(name: str) -> None:
    method, (support_TWKD, queries_TQD) = tiny(name), tasks()
    _, joint_TQW = method.joint_logits(support_TWKD, queries_TQD)
    few_shot_TQW = method.unseen_logits(support_TWKD, queries_TQD)
    if method.few_shot_is_joint:
        torch.testing.assert_close(few_shot_TQW, joint_TQW, rtol=1e-8, atol=1e-8)
    elif name not in POOL_IS_SUPPORT:
        assert not torch.allclose(few_shot_TQW, joint_TQW)


@every_method
def test_a_bound_scorer_equals_the_method(name: str) -> None:
    if name in POOL_IS_SUPPORT:
        pytest.skip("its scorer takes the pool as support")
    method = tiny(name)
    labels_N = torch.arange(len(WORLD.centres_CD)).repeat_interleave(10)
    pool = Pool(WORLD.images(labels_N, 5).double(), labels_N)
    random = generator(0, "pool")
    tail_TW = WORLD.seen + torch.rand(TASKS, 6, generator=random).argsort(dim=1)[:, :WAYS]
    support_TWK = tail_TW.unsqueeze(2) * 10 + torch.arange(SHOTS)
    queries_TQ = torch.randint(len(labels_N), (TASKS, QUERIES), generator=random)
    task_batch = TaskBatch(support_TWK, queries_TQ)
    embedded = pool.embeddings_ND[support_TWK], pool.embeddings_ND[queries_TQ]
    with torch.no_grad():
        seen_TQS, unseen_TQW = method.joint_logits(*embedded)
        few_shot_TQW = method.unseen_logits(*embedded)
        scorer = method.scorer(pool)
        scores = scorer(task_batch)
        torch.testing.assert_close(scores.unseen_TQW, unseen_TQW, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(scores.best_seen_TQ, seen_TQS.max(dim=-1).values, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(scores.seen_label_TQ, seen_TQS.argmax(dim=-1))
        torch.testing.assert_close(scores.seen_logits(QUERIES), seen_TQS, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(scores.seen_totals(), seen_TQS.logsumexp(dim=-1), rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(scorer.unseen_logits(task_batch), few_shot_TQW, rtol=1e-8, atol=1e-8)


@every_method
def test_fixed_seen_scores_do_not_depend_on_the_task(name: str) -> None:
    method, (support_TWKD, queries_TQD) = tiny(name), tasks()
    if not isinstance(method, FixedSeen):
        pytest.skip("seen scores depend on the task")
    seen_TQS, _ = method.joint_logits(support_TWKD, queries_TQD)
    other_TQS, _ = method.joint_logits(support_TWKD.flip(0), queries_TQD)
    torch.testing.assert_close(other_TQS, seen_TQS)


@every_method
def test_every_trainable_weight_is_in_exactly_one_group(name: str) -> None:
    method = tiny(name)
    trainable = sorted(id(parameter) for parameter in method.parameters() if parameter.requires_grad)
    if method.batch_spec(SHOTS) is None:
        assert not trainable
        return
    groups = method.parameter_groups()
    assert sorted(id(parameter) for group in groups for parameter in group["params"]) == trainable
    assert len({group["name"] for group in groups}) == len(groups)
    assert all(group["lr_scale"] > 0 and group["params"] for group in groups)


@every_method
def test_the_loss_reaches_everything_that_learns(name: str) -> None:
    method, loss = trained(name)
    assert loss.isfinite() and loss.shape == ()
    for parameter_name, parameter in method.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None and parameter.grad.abs().sum() > 0, parameter_name
        else:
            assert parameter.grad is None, parameter_name


@every_method
def test_the_loss_repeats_with_the_same_generator(name: str) -> None:
    first, second = trained(name)[1], trained(name)[1]
    assert torch.equal(first, second)


@every_method
def test_a_batch_with_fewer_classes_than_asked_for_trains(name: str) -> None:
    """One domain may have fewer classes than the step wants; a task then has all of them."""
    method = tiny(name).train()
    spec = method.batch_spec(SHOTS)
    if spec is None:
        pytest.skip("nothing to train after pre-training")
    batch = embed(_double(WORLD.batch(spec, 0)), method.backbone)
    few = type(batch)(
        batch.support_TCKD[:, :3], batch.query_TCQD[:, :3], batch.labels_TC[:, :3], batch.free_BD, batch.free_labels_B
    )
    assert method.loss(few, generator(0, "loss")).isfinite()


@every_method
def test_saved_weights_give_the_same_logits(name: str, tmp_path: Path) -> None:
    method, (support_TWKD, queries_TQD) = tiny(name), tasks()
    save_file({key: value.contiguous() for key, value in method.state_dict().items()}, tmp_path / "m.safetensors")
    fresh = tiny(name)
    with torch.no_grad():
        for tensor in fresh.state_dict().values():
            tensor.zero_()
    fresh.load_state_dict(load_file(tmp_path / "m.safetensors"), strict=True)
    for restored, original in zip(
        fresh.joint_logits(support_TWKD, queries_TQD), method.joint_logits(support_TWKD, queries_TQD), strict=True
    ):
        assert torch.equal(restored, original)


@every_method
def test_no_method_remembers_more_images_than_every_model_embeds(name: str) -> None:
    assert 0 <= method_class(name).remembers <= EXEMPLARS
