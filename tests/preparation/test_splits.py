"""Class splits: drawn ones are disjoint, of the right size and fixed by the seed; overlapping lists are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.data.dataset import ClassInfo
from repro.errors import BadInput
from repro.preparation.augmented_seen import Halves, among_training, cleaned, draw_extra, shuffled, two_halves
from repro.preparation.sources.ilsvrc import LISTS, read_classes
from repro.preparation.splits import (
    SplitSizes,
    check_disjoint,
    check_supercategories,
    draw_classes,
    label_order,
    split_sizes,
)

NEEDED = {"seen": 8, "val": 5, "test": 5}


@given(st.integers(0, 2**32), st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5)))
def test_drawn_classes_are_disjoint_large_enough_and_fixed_by_the_seed(seed: int, sizes: tuple[int, int, int]):
    images = {f"c{number}": 5 + number % 6 for number in range(40)}
    split_of = draw_classes(images, SplitSizes(*sizes), NEEDED, seed, "tiny")
    assert [list(split_of.values()).count(split) for split in ("seen", "val", "test")] == list(sizes)
    assert all(images[name] >= NEEDED[split] for name, split in split_of.items())
    reordered = dict(reversed(images.items()))
    assert draw_classes(reordered, SplitSizes(*sizes), NEEDED, seed, "tiny") == split_of


def test_another_seed_draws_other_classes():
    images = {f"c{number}": 10 for number in range(40)}
    draws = [draw_classes(images, SplitSizes(10, 5, 5), NEEDED, seed, "tiny") for seed in range(3)]
    assert draws[0] != draws[1] != draws[2]


def test_too_few_large_classes_are_counted():
    images = {"a": 9, "b": 8, "c": 7, "d": 6}
    with pytest.raises(BadInput, match=r"tiny: 2 of 4 classes left have the 8 images .* expected 3 such classes"):
        draw_classes(images, SplitSizes(3, 1, 1), NEEDED, 0, "tiny")


@pytest.mark.parametrize("classes", [[1, 2], [1, 2, 0], []])
def test_split_sizes_are_three_positive_numbers(classes: list):
    with pytest.raises(BadInput, match=r"expected three positive numbers \[seen, val, test\]"):
        split_sizes(classes)


def test_labels_count_seen_then_val_then_test_each_by_name():
    classes = [ClassInfo("b", "test"), ClassInfo("z", "seen"), ClassInfo("c", "val"), ClassInfo("a", "seen")]
    assert [info.name for info in label_order(classes)] == ["a", "z", "c", "b"]


def test_overlapping_lists_are_refused_with_the_first_name():
    with pytest.raises(BadInput, match=r"^b is in the lists train and test \(2 such entries\)"):
        check_disjoint({"train": ["a", "b", "c"], "val": ["d"], "test": ["c", "b"]})
    with pytest.raises(BadInput, match=r"^a is twice in the list train"):
        check_disjoint({"train": ["a", "a"]})


def test_a_supercategory_stays_in_one_split():
    with pytest.raises(BadInput, match="dog is in the lists seen and val"):
        check_supercategories([ClassInfo("a", "seen", "dog"), ClassInfo("b", "val", "dog")])


@pytest.mark.parametrize(
    ("table", "columns", "counts"),
    [
        ("miniimagenet.tsv", {"name": "wnid"}, [64, 16, 20]),
        ("tieredimagenet.tsv", {"name": "wnid", "supercategory": "super_name"}, [351, 97, 160]),
    ],
)
def test_the_shipped_class_lists_have_the_published_counts(table: str, columns: dict[str, str], counts: list[int]):
    infos = label_order(read_classes(LISTS / table, columns))
    assert [sum(info.split == split for info in infos) for split in ("seen", "val", "test")] == counts
    if "supercategory" in columns:
        check_supercategories(infos)
        supers = [len({i.supercategory for i in infos if i.split == split}) for split in ("seen", "val", "test")]
        assert supers == [20, 6, 8]


def test_fifteen_extra_images_give_seven_for_validation_and_eight_for_test():
    halves = two_halves(list(range(15)))
    assert [len(halves.seen_val), len(halves.seen_test)] == [7, 8]
    assert not set(halves.seen_val) & set(halves.seen_test)


def test_shuffling_is_a_permutation_fixed_by_seed_and_purpose():
    items = list(range(50))
    once = shuffled(items, 3, "a")
    assert sorted(once) == items
    assert once == shuffled(items, 3, "a")
    assert once != shuffled(items, 3, "b")
    assert once != shuffled(items, 4, "a")


# Letters are images; the content of upper and lower case is the same.
CONTENT = {letter: letter.lower() for letter in "aAbB"}


def test_drawn_extra_images_avoid_training_images_and_their_copies():
    halves = draw_extra({"c": list("AbBcdefg")}, train=["a", "c"], content=CONTENT, sizes=(2, 2), seed=0)["c"]
    drawn = halves.seen_val + halves.seen_test
    assert len(drawn) == len(set(drawn)) == 4
    assert not set(drawn) & {"A", "a", "c", "B"}


def test_too_few_images_for_the_extra_halves_are_counted():
    with pytest.raises(BadInput, match=r"class c has 3 images besides the training images, expected 4"):
        draw_extra({"c": list("Abde")}, train=["a"], content=CONTENT, sizes=(2, 2), seed=0)


def test_cleaning_drops_training_images_by_content_and_repeats_from_the_validation_half():
    listed = Halves(seen_val=["A", "b", "d", "x"], seen_test=["B", "d", "y", "t"])
    assert among_training("Abdxyt", ["a", "t"], CONTENT) == {"A", "t"}
    clean = cleaned(listed, ["a", "t"], CONTENT)
    assert clean == Halves(seen_val=["x"], seen_test=["B", "d", "y"])
