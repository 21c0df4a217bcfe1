"""Evaluation tasks: no image twice, one domain where the rule says so, the same list for everyone."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.data.dataset import Dataset, open_dataset
from repro.data.episodes import BLOCK, TaskSpec, draw_distinct, draw_tasks, read_tasks, ways_available, write_tasks
from repro.data.seeding import generator
from repro.errors import BadInput
from tests.conftest import write_tiny_dataset

SPEC = TaskSpec("test", way=5, shot=2, tasks=40, query=4)


def all_images(tasks):
    """Every image of every task (T × everything)."""
    return torch.cat([tasks.support_TWK.flatten(1), tasks.query_TWQ.flatten(1), tasks.seen_TQ], dim=1).long()


@settings(max_examples=40, deadline=None)
@given(
    counts=st.lists(st.integers(3, 40), min_size=1, max_size=30), number=st.integers(0, 3), seed=st.integers(0, 2**32)
)
def test_a_draw_is_distinct_and_below_the_count(counts: list[int], number: int, seed: int) -> None:
    counts_R = torch.tensor(counts)
    places = draw_distinct(counts_R, number, generator(seed, "draw"))
    assert places.shape == (len(counts), number)
    assert (places >= 0).all() and (places < counts_R[:, None]).all()
    assert all(len(set(row)) == number for row in places.tolist())


def test_a_draw_can_take_everything() -> None:
    places = draw_distinct(torch.full((200,), 12), 12, generator(0, "everything"))
    assert torch.equal(places.sort(dim=1).values, torch.arange(12).expand(200, 12))


def test_every_ordered_choice_is_equally_likely() -> None:
    rows = 24_000
    places = draw_distinct(torch.full((rows,), 4), 3, generator(0, "fair"))
    counts = torch.bincount(places @ torch.tensor([16, 4, 1]), minlength=64)
    counts = counts[counts > 0]
    assert len(counts) == 24
    # Chi-squared with 23 degrees of freedom: 49.7 is exceeded once in a thousand.
    assert ((counts - rows / 24) ** 2 / (rows / 24)).sum() < 49.7


@settings(max_examples=25, deadline=None)
@given(
    spec=st.builds(
        TaskSpec,
        split=st.sampled_from(["val", "test", "seen"]),
        way=st.integers(1, 6),
        shot=st.integers(1, 5),
        tasks=st.just(30),
        query=st.integers(1, 15),
    ),
    seed=st.integers(0, 100),
)
def test_tasks_keep_their_promises(tiny: Dataset, spec: TaskSpec, seed: int) -> None:
    split, way, shot, query = spec.split, spec.way, spec.shot, spec.query
    tasks = draw_tasks(tiny, spec, seed)
    assert tasks.classes_TW.shape == (30, way)
    assert tasks.support_TWK.shape == (30, way, shot) and tasks.query_TWQ.shape == (30, way, query)
    assert tasks.seen_TQ.shape == (30, 0 if split == "seen" else way * query)
    labels_N = tiny.labels_N
    for images in (tasks.support_TWK, tasks.query_TWQ):
        assert torch.equal(labels_N[images.long()], tasks.classes_TW.long()[..., None].expand_as(images))
    assert all(len(set(row)) == way for row in tasks.classes_TW.tolist())
    assert all(len(set(row)) == len(row) for row in all_images(tasks).tolist())
    roles = {"val": ("val", "val", "seen_val"), "test": ("test", "test", "seen_test")}
    expected = roles.get(split, ("train", "seen_test", "seen_test"))
    for images, role in zip((tasks.support_TWK, tasks.query_TWQ, tasks.seen_TQ), expected, strict=True):
        assert torch.isin(images.long(), tiny.roles[role]).all()


def test_classes_and_images_are_drawn_evenly(tiny: Dataset) -> None:
    tasks = draw_tasks(tiny, TaskSpec("test", way=2, shot=1, tasks=4000, query=1), seed=3)
    for images, role, per_task in ((tasks.query_TWQ, "test", 2), (tasks.seen_TQ, "seen_test", 2)):
        counts = torch.bincount(images.flatten().long(), minlength=len(tiny.labels_N))[tiny.roles[role]].double()
        expected = 4000 * per_task / len(counts)
        # A normal approximation of chi-squared, four standard deviations wide.
        statistic = ((counts - expected) ** 2 / expected).sum()
        assert abs(statistic - len(counts)) < 4 * (2 * len(counts)) ** 0.5


def test_a_task_stays_in_its_domain(tiny_domains: Dataset) -> None:
    tasks = draw_tasks(tiny_domains, replace(SPEC, tasks=60), seed=1)
    own = torch.cat([tasks.support_TWK, tasks.query_TWQ], dim=2).flatten(1).long()
    domain_T = tiny_domains.domains_N[own[:, 0]]
    assert (tiny_domains.domains_N[own] == domain_T[:, None]).all()
    assert domain_T.unique().tolist() == [0, 1]
    of_seen = tiny_domains.domains_N[tasks.seen_TQ.long()] == domain_T[:, None]
    if tiny_domains.header.domain_rule == "per_image":
        assert of_seen.all()
    else:
        assert 0.4 < of_seen.double().mean() < 0.6


def test_tasks_over_the_seen_classes_mix_domains(tiny_domains: Dataset) -> None:
    tasks = draw_tasks(tiny_domains, TaskSpec("seen", way=12, shot=3, tasks=20, query=5), seed=1)
    assert torch.equal(tasks.classes_TW.sort(dim=1).values, torch.arange(12).expand(20, 12).int())
    assert tiny_domains.domains_N[tasks.support_TWK.long()].flatten(1).unique().tolist() == [0, 1]


def test_a_longer_list_begins_with_the_shorter_one(tiny: Dataset) -> None:
    short, long = (draw_tasks(tiny, replace(SPEC, tasks=number), seed=5) for number in (BLOCK - 1, BLOCK + 7))
    assert torch.equal(all_images(short), all_images(long)[: BLOCK - 1])
    assert short.digest != long.digest
    assert not torch.equal(all_images(long)[:7], all_images(long)[BLOCK:])


def test_seed_and_spec_decide_the_list(tiny: Dataset) -> None:
    assert draw_tasks(tiny, SPEC, 0).digest == draw_tasks(tiny, SPEC, 0).digest
    others = [draw_tasks(tiny, SPEC, 1), draw_tasks(tiny, replace(SPEC, split="val"), 0)]
    assert len({draw_tasks(tiny, SPEC, 0).digest, *(tasks.digest for tasks in others)}) == 3


def test_stored_tasks_come_back_and_are_the_same_bytes(tiny: Dataset, tmp_path: Path) -> None:
    tasks = draw_tasks(tiny, SPEC, 0)
    for name in ("first", "second"):
        write_tasks(tmp_path / name, draw_tasks(tiny, SPEC, 0))
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    back = read_tasks(tmp_path / "first")
    assert back.spec == SPEC and back.digest == tasks.digest
    assert torch.equal(all_images(back), all_images(tasks)) and torch.equal(back.classes_TW, tasks.classes_TW)


def test_a_changed_or_foreign_file_is_refused(tiny: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "tasks"
    write_tasks(path, draw_tasks(tiny, SPEC, 0))
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(BadInput, match="expected .*draw the tasks again"):
        read_tasks(path)
    path.write_bytes(b"something else")
    with pytest.raises(BadInput, match="not a stored task list"):
        read_tasks(path)
    with pytest.raises(BadInput, match="not a stored task list"):
        read_tasks(tmp_path / "absent")


def test_ways_available_follow_classes_and_domains(tiny: Dataset, tiny_domains: Dataset) -> None:
    assert (ways_available(tiny, "val"), ways_available(tiny, "test")) == (6, 7)
    per_domain = {"per_class": 6, "per_image": 12}[tiny_domains.header.domain_rule]
    assert ways_available(tiny_domains, "val") == per_domain
    assert draw_tasks(tiny_domains, replace(SPEC, way=per_domain, query=1), 0).classes_TW.shape[1] == per_domain
    with pytest.raises(BadInput, match=f"no more than {per_domain} classes"):
        draw_tasks(tiny_domains, replace(SPEC, way=per_domain + 1, query=1), 0)


def test_too_little_data_is_named(tiny: Dataset, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="test-0 has 24 test images, tasks need 25"):
        draw_tasks(tiny, replace(SPEC, shot=10, query=15), 0)
    with pytest.raises(BadInput, match="seen-0 has 24 seen_test images, tasks need 30"):
        draw_tasks(tiny, replace(SPEC, split="seen", query=30), 0)
    with pytest.raises(BadInput, match="no more than 7 classes, tasks ask for 8 ways; lower `way` to 7"):
        draw_tasks(tiny, replace(SPEC, way=8), 0)
    write_tiny_dataset(tmp_path / "few-seen", seen=1)
    with pytest.raises(BadInput, match="seen_test has 24 images for a task, 5 ways need 75"):
        draw_tasks(open_dataset(tmp_path / "few-seen"), replace(SPEC, query=15), 0)
    write_tiny_dataset(tmp_path / "empty", val=0)
    with pytest.raises(BadInput, match="val has no images"):
        draw_tasks(open_dataset(tmp_path / "empty"), replace(SPEC, split="val"), 0)


@pytest.mark.parametrize(
    "wrong", [{"way": 0}, {"shot": 0}, {"tasks": 0}, {"query": -1}, {"split": "train"}], ids=lambda wrong: str(*wrong)
)
def test_an_impossible_spec_is_refused(wrong: dict[str, int | str]) -> None:
    with pytest.raises(BadInput, match=next(iter(wrong))):
        replace(SPEC, **wrong)
