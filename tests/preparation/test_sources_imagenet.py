"""MiniImageNet and TieredImageNet, built small: counts, disjoint roles by content, determinism, bad input."""

import errno
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from repro.data.dataset import MANIFEST, open_dataset
from repro.errors import BadInput
from repro.preparation import listing
from repro.preparation.packing import pack
from repro.preparation.sources import collect
from tests.preparation import raw_trees
from tests.preparation.raw_trees import SEEN, TEST, VAL, ilsvrc, mini_lists, mini_name, put, write_csv
from tests.preparation.role_checks import assert_roles_are_disjoint, contents, counts, role_counts, sources

ALL = (*SEEN, *VAL, *TEST)


# ── MiniImageNet


@pytest.fixture
def mini(tmp_path: Path) -> dict[str, object]:
    """Options of a MiniImageNet with 6 listed images of 16 per class, and 4 extra ones for either half."""
    root = ilsvrc(tmp_path / "ILSVRC 2012 – ü" / "train", ALL, 16)
    return {
        "root": root,
        "lists": mini_lists(tmp_path / "lists", [2, 3, 5, 7, 11, 16], "counter"),
        "classes": raw_trees.class_table(tmp_path / "classes.tsv"),
        "per_class": 6,
        "extra_per_half": 4,
    }


def publish(options: dict[str, object], val_ranks: list[int], test_ranks: list[int]) -> None:
    """Write released lists of extra images, by ILSVRC's names."""
    for half, ranks in (("val", val_ranks), ("test", test_ranks)):
        rows = [(mini_name(class_id, rank, "ilsvrc"), class_id) for class_id in SEEN for rank in ranks]
        write_csv(Path(str(options["lists"])) / f"aux_{half}.csv", rows)


def test_mini_has_the_listed_images_and_two_disjoint_extra_halves(mini):
    collection = collect("miniimagenet", "mini", 0, mini)
    expected = (
        {(c, "train"): 6 for c in SEEN} | {(c, "seen_val"): 4 for c in SEEN} | {(c, "seen_test"): 4 for c in SEEN}
    )
    expected |= {(c, "val"): 6 for c in VAL} | {(c, "test"): 6 for c in TEST}
    assert counts(collection) == expected
    assert_roles_are_disjoint(collection)
    assert [info.split for info in collection.header.classes] == ["seen", "seen", "val", "test", "test"]
    assert collection.header.provenance["extra"] == "drawn"


@pytest.mark.parametrize("naming", ["counter", "ilsvrc"])
def test_mini_counters_are_ranks_from_one_by_number(mini, tmp_path: Path, naming: str):
    ranks = [2, 3, 5, 7, 11, 16]
    mini["lists"] = mini_lists(tmp_path / naming, ranks, naming)
    collection = collect("miniimagenet", "mini", 0, mini)
    numbers = [raw_trees.ilsvrc_number(rank - 1) for rank in ranks]
    assert sources(collection, "train") == {f"{c}/{c}_{number}.JPEG" for c in SEEN for number in numbers}
    assert collection.header.provenance["naming"] == naming


def test_mini_drawn_extras_avoid_copies_of_training_images(mini):
    root = Path(str(mini["root"]))
    for rank in range(8, 11):  # three of the ten free images are copies of listed ones, one across classes
        training = root / SEEN[0] / mini_name(SEEN[0], {8: 2, 9: 3, 10: 5}[rank], "ilsvrc")
        shutil.copy(training, root / SEEN[rank % 2] / mini_name(SEEN[rank % 2], rank, "ilsvrc"))
    assert_roles_are_disjoint(collect("miniimagenet", "mini", 0, mini))


def test_mini_published_lists_are_used_exactly_and_cleaned_by_content(mini):
    publish(mini, val_ranks=[1, 2, 4, 6], test_ranks=[6, 8, 9, 11])  # 2 and 11 are training images, 6 is in both
    root = Path(str(mini["root"]))
    shutil.copy(root / SEEN[0] / mini_name(SEEN[0], 3, "ilsvrc"), root / SEEN[0] / mini_name(SEEN[0], 9, "ilsvrc"))

    exact = collect("miniimagenet", "mini", 0, {**mini, "extra": "published"})
    assert role_counts(exact)["seen_val"] == role_counts(exact)["seen_test"] == 8
    facts = exact.header.provenance
    assert (facts["extra"], facts["extra_listed"], facts["extra_among_training"]) == ("published", 16, 5)

    clean = collect("miniimagenet", "mini", 0, {**mini, "extra": "clean"})
    assert clean.header.provenance["extra"] == "clean"
    assert clean.header.provenance["extra_among_training"] == 5
    names = {raw_trees.ilsvrc_number(rank - 1): rank for rank in range(1, 17)}
    kept = {s.split("/")[0]: [] for s in sources(clean, "seen_val")}
    for source in sources(clean, "seen_val"):
        kept[source.split("/")[0]].append(names[int(source.rpartition("_")[2].removesuffix(".JPEG"))])
    assert {class_id: sorted(ranks) for class_id, ranks in kept.items()} == {SEEN[0]: [1, 4], SEEN[1]: [1, 4]}
    assert role_counts(clean)["seen_test"] == 3 + 2
    assert_roles_are_disjoint(clean)


def test_mini_drawn_still_tells_how_many_published_extras_are_training_images(mini):
    publish(mini, val_ranks=[1, 2], test_ranks=[11, 8])
    facts = collect("miniimagenet", "mini", 0, mini).header.provenance
    assert (facts["extra"], facts["extra_listed"], facts["extra_among_training"]) == ("drawn", 8, 4)


@pytest.mark.parametrize("in_classes", [True, False])
def test_mini_may_take_the_listed_images_from_an_extracted_copy(mini, tmp_path: Path, in_classes: bool):
    for class_id in ALL:
        for rank in (2, 3, 5, 7, 11, 16):
            put(tmp_path / "images" / (class_id if in_classes else ".") / mini_name(class_id, rank, "counter"))
    collection = collect("miniimagenet", "mini", 0, {**mini, "images": tmp_path / "images"})
    assert all(source.endswith(".jpg") for source in sources(collection, "train"))
    drawn = sources(collection, "seen_val") | sources(collection, "seen_test")
    listed = sources(collect("miniimagenet", "mini", 0, mini), "train")
    assert not drawn & listed


def test_mini_seed_changes_the_extra_images_and_nothing_else(mini):
    first, again, other = (collect("miniimagenet", "mini", seed, mini) for seed in (0, 0, 1))
    assert [p.raw.source for p in first.pictures] == [p.raw.source for p in again.pictures]
    assert sources(first, "train") == sources(other, "train")
    assert sources(first, "seen_test") != sources(other, "seen_test")


def test_mini_packs_to_the_same_bytes_twice(mini, tmp_path: Path):
    for name in ("one", "two"):
        pack(collect("miniimagenet", "mini", 0, mini), tmp_path / name, size=8)
    assert (tmp_path / "one" / "dataset.json").read_bytes() == (tmp_path / "two" / "dataset.json").read_bytes()
    dataset = open_dataset(tmp_path / "one")
    assert dataset.seen_classes == 2
    assert len(dataset.roles["train"]) == 12
    packed = pd.read_parquet(tmp_path / "one" / MANIFEST)
    assert not set(packed[packed.role == "train"].sha256) & set(packed[packed.role.str.startswith("seen_")].sha256)


def test_mini_finds_the_training_folder_below_the_archive(mini, tmp_path: Path):
    place = tmp_path / "archive" / "ILSVRC" / "Data" / "CLS-LOC"
    place.mkdir(parents=True)
    Path(str(mini["root"])).rename(place / "train")
    assert len(collect("miniimagenet", "mini", 0, {**mini, "root": tmp_path / "archive"}).pictures) == 46


def rows_of(class_id: str, ranks: tuple[int, ...]) -> list[tuple[str, str]]:
    return [(mini_name(class_id, rank, "counter"), class_id) for rank in ranks]


def damaged(mini: dict[str, object], case: str) -> dict[str, object]:
    """The options after one thing was spoilt."""
    root, lists = Path(str(mini["root"])), Path(str(mini["lists"]))
    good = [row for class_id in SEEN for row in rows_of(class_id, (2, 3, 5, 7, 11, 16))]
    damage = {
        "no root": lambda: shutil.rmtree(root),
        "wrong layout": lambda: [(root / c).rename(root / f"class{c}") for c in ALL],
        "class missing": lambda: shutil.rmtree(root / SEEN[1]),
        "no list": (lists / "val.csv").unlink,
        "columns": lambda: write_csv(lists / "train.csv", good, ("name", "label")),
        "absent rank": lambda: write_csv(lists / "train.csv", [("n0000000100000017.jpg", SEEN[0]), *good[1:]]),
        "rank zero": lambda: write_csv(lists / "train.csv", [("n0000000100000000.jpg", SEEN[0]), *good[1:]]),
        "traversal": lambda: write_csv(lists / "train.csv", [*good[:-1], ("../../../etc/n00000002_1.JPEG", SEEN[1])]),
        "other class": lambda: write_csv(lists / "train.csv", [(good[-1][0], SEEN[0]), *good[1:]]),
        "mixed naming": lambda: write_csv(lists / "train.csv", [*good[:-1], ("n00000002_2.JPEG", SEEN[1])]),
        "too few": lambda: write_csv(lists / "train.csv", good[1:]),
        "empty list": lambda: write_csv(lists / "train.csv", []),
        "twice": lambda: write_csv(lists / "train.csv", [good[1], *good[1:]]),
        "overlap": lambda: write_csv(lists / "val.csv", [good[0], *rows_of(VAL[0], (2, 3, 5, 7, 11))]),
        "class of another split": lambda: write_csv(lists / "val.csv", rows_of(SEEN[0], (1, 4, 6, 8, 9, 10))),
        "no aux": lambda: mini.update(extra="published"),
        "variant": lambda: mini.update(extra="dirty"),
        "too few extra": lambda: mini.update(extra_per_half=6),
        "binary list": lambda: (lists / "train.csv").write_bytes(b"\xff\xfe\x00filename"),
        "names": lambda: (root / SEEN[0]).joinpath("photo.jpg").write_bytes(b""),
    }  # fmt: skip
    damage[case]()
    return mini


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("no root", r"train: cannot be listed \(No such file or directory\), expected MiniImageNet's folder"),
        (
            "wrong layout",
            r"has names such as n0.*\.JPEG; expected lists and images of the same naming, or all of ILSVRC",
        ),
        ("class missing", r"has no folder n00000002, expected ILSVRC-12's training images"),
        ("no list", r"lists: has no val\.csv, expected the lists train\.csv, val\.csv and test\.csv"),
        ("columns", r"train\.csv: has the columns \['name', 'label'\], expected \['filename', 'label'\]"),
        (
            "absent rank",
            r"train\.csv: names n0000000100000017\.jpg, which is not among the 16 images of class n00000001",
        ),
        ("rank zero", r"train\.csv: names n0000000100000000\.jpg, which is not among the 16 images of class n00000001"),
        ("traversal", r"train\.csv: line 13 names '\.\./\.\./\.\./etc/n00000002_1\.JPEG'"),
        ("other class", r"train\.csv: line 2 names 'n0000000200000016\.jpg' of class 'n00000001'"),
        ("mixed naming", r"train\.csv: line 13 names 'n00000002_2\.JPEG'.*as in the other lines"),
        ("too few", r"train\.csv: names 5 images of class n00000001, expected 6"),
        ("empty list", r"train\.csv: names no files"),
        ("twice", r"n0000000100000003\.jpg is twice in the list train\.csv"),
        ("overlap", r"n0000000100000002\.jpg is in the lists train\.csv and val\.csv"),
        ("class of another split", r"val\.csv: names class n00000001 \(0 of no split .*another split \(Vinyals"),
        ("no aux", r"aux_val\.csv: cannot be read"),
        ("variant", r"extra is 'dirty', expected: input should be 'drawn', 'published', 'clean' or 'held_out'"),
        ("too few extra", r"class n00000001 has 10 images besides the training images, expected 12"),
        ("binary list", r"train\.csv: cannot be read .*expected a table with the columns"),
        ("names", r"n00000001: holds names that do not end in a number .*expected names such as n00000001_13061\.JPEG"),
    ],
)
def test_mini_bad_input_is_one_sentence(mini, case: str, message: str):
    options = damaged(mini, case)
    with pytest.raises(BadInput, match=message) as raised:
        collect("miniimagenet", "mini", 0, options)
    assert "\n" not in str(raised.value)


def test_a_root_without_permission_is_named(mini, monkeypatch):
    def refuse(folder: object) -> object:
        if Path(str(folder)).name != "train":
            return real(folder)
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))

    real = os.scandir
    monkeypatch.setattr(listing.os, "scandir", refuse)
    with pytest.raises(BadInput, match=r"train: cannot be listed \(Permission denied\)"):
        collect("miniimagenet", "mini", 0, mini)


# ── TieredImageNet


def test_tiered_takes_all_images_and_holds_out_the_extra_ones(tmp_path: Path):
    root = ilsvrc(tmp_path / "train", ALL, 12)
    shutil.copy(next((root / SEEN[0]).iterdir()), root / SEEN[1] / f"{SEEN[1]}_9999.JPEG")
    table = raw_trees.class_table(tmp_path / "classes.tsv", supercategories=True)
    options = {"root": root, "classes": table, "extra_per_half": 3}
    collection = collect("tieredimagenet", "tiered", 0, options)
    assert role_counts(collection) == {"train": 6 + 7, "val": 12, "test": 24, "seen_val": 6, "seen_test": 6}
    assert contents(collection, "train").isdisjoint(
        contents(collection, "seen_val") | contents(collection, "seen_test")
    )
    assert {info.supercategory for info in collection.header.classes} == {"super seen", "super val", "super test"}
    with pytest.raises(BadInput, match=r"class n00000001 has 11 images besides the training images, expected 14"):
        collect("tieredimagenet", "tiered", 0, {**options, "extra_per_half": 7})


@pytest.mark.parametrize("labels", ["specific", "plain"])
@pytest.mark.parametrize("images", ["npz", "compressed", "png"])
def test_tiered_packs_give_true_colours_and_all_counts(tmp_path: Path, images: str, labels: str):
    pixels = raw_trees.tiered_packed(tmp_path / "raw", 10, images=images, labels=labels)
    options = {"root": tmp_path / "raw", "extra_per_half": 3, "classes": [2, 1, 2]}
    collection = collect("tieredimagenet_packed", "tiered", 0, options)
    assert role_counts(collection) == {"train": 8, "val": 10, "test": 20, "seen_val": 6, "seen_test": 6}
    assert_roles_are_disjoint(collection)
    pack(collection, tmp_path / "out", size=12)
    dataset, manifest = open_dataset(tmp_path / "out"), pd.read_parquet(tmp_path / "out" / MANIFEST)
    for row, (source, label) in enumerate(zip(manifest["source"], manifest["label"], strict=True)):
        stem, place = source.split("_")[0], int(source.split("#")[1])
        assert np.array_equal(dataset.images_NHWC[row], pixels[stem][place])
        assert label == {"train": 0, "val": 2, "test": 3}[stem] + place // 10
    supers = {info.supercategory for info in dataset.header.classes}
    assert supers == ({"super train", "super val", "super test"} if labels == "specific" else {""})


def test_tiered_uncompressed_pixels_stay_on_disk(tmp_path: Path):
    raw_trees.tiered_packed(tmp_path, 10, images="npz", labels="plain")
    collection = collect("tieredimagenet_packed", "t", 0, {"root": tmp_path, "extra_per_half": 3, "classes": [2, 1, 2]})
    owner = collection.pictures[0].raw.origin
    while isinstance(owner, np.ndarray) and not isinstance(owner, np.memmap):
        owner = owner.base
    assert isinstance(owner, np.memmap)


def test_tiered_released_extra_images_become_two_halves(tmp_path: Path):
    raw_trees.tiered_packed(tmp_path, 5, images="npz", labels="specific")
    random = np.random.default_rng(5)
    raw_trees.write_pixels(tmp_path, "aux_data", random.integers(0, 256, (14, 12, 12, 3), dtype=np.uint8), "npz")
    (tmp_path / "aux_labels.pkl").write_bytes(pickle.dumps({"labels": [0] * 7 + [1] * 7}))
    collection = collect("tieredimagenet_packed", "tiered", 0, {"root": tmp_path, "classes": [2, 1, 2]})
    assert role_counts(collection) == {"train": 10, "val": 5, "test": 10, "seen_val": 6, "seen_test": 8}
    assert_roles_are_disjoint(collection)
    assert collection.header.provenance["extra"] == "published"


def test_tiered_clean_extra_images_are_no_training_images(tmp_path: Path):
    raw_trees.tiered_packed(tmp_path, 5, images="npz", labels="specific")
    trained = np.load(tmp_path / "train_images.npz")["images"][..., ::-1]  # blue comes first in the file
    random = np.random.default_rng(5)
    pixels = random.integers(0, 256, (14, *trained.shape[1:]), dtype=np.uint8)
    pixels[3], pixels[9] = trained[0], trained[7]
    raw_trees.write_pixels(tmp_path, "aux_data", pixels, "npz")
    (tmp_path / "aux_labels.pkl").write_bytes(pickle.dumps({"labels": [0] * 7 + [1] * 7}))
    options = {"root": tmp_path, "classes": [2, 1, 2]}
    counts = {}
    for extra in ("published", "clean"):
        collection = collect("tieredimagenet_packed", "tiered", 0, {**options, "extra": extra})
        counts[extra] = role_counts(collection)["seen_val"] + role_counts(collection)["seen_test"]
        assert collection.header.provenance["extra_among_training"] == 2
    assert counts == {"published": 14, "clean": 12}


def spoil(root: Path, what: object) -> None:
    """Replace the validation images (an array), its labels (anything else) or remove a file (its name)."""
    if isinstance(what, np.ndarray):
        np.savez(root / "val_images.npz", images=what)
    elif isinstance(what, str):
        (root / what).unlink()
    else:
        (root / "val_labels.pkl").write_bytes(pickle.dumps(what))


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("val_labels.pkl", r"val_labels\.pkl: cannot be read"),
        ("val_images.npz", r"has neither val_images\.npz nor val_images_png\.pkl"),
        (np.zeros((9, 4, 4, 3)), r"val_images\.npz: holds images of type float64"),
        (np.zeros((9, 4, 4, 3), np.uint8), r"val_images\.npz: holds 9 images, expected 10"),
        ([1, 2], r"val_labels\.pkl: holds list, expected a dictionary"),
        ({"label": [0] * 10}, r"val_labels\.pkl: holds keys \['label'\], expected a dictionary"),
        ({"labels": [1, 2] * 5}, r"2 val classes in the labels, expected 1"),
        (os.getcwd, r"val_labels\.pkl: asks for posix\.getcwd"),
    ],
)
def test_tiered_bad_packs_are_one_sentence(tmp_path: Path, what: object, message: str):
    raw_trees.tiered_packed(tmp_path, 10, images="npz", labels="specific")
    spoil(tmp_path, what)
    with pytest.raises(BadInput, match=message) as raised:
        collect("tieredimagenet_packed", "t", 0, {"root": tmp_path, "extra_per_half": 3, "classes": [2, 1, 2]})
    assert "\n" not in str(raised.value)


def test_tiered_npz_that_is_none_is_told(tmp_path: Path):
    raw_trees.tiered_packed(tmp_path, 10, images="npz", labels="specific")
    options = {"root": tmp_path, "extra_per_half": 3, "classes": [2, 1, 2]}
    np.savez(tmp_path / "val_images.npz", pictures=np.zeros(3))
    with pytest.raises(BadInput, match=r"val_images\.npz: cannot be read .*an npz with an array called images"):
        collect("tieredimagenet_packed", "t", 0, options)
    (tmp_path / "val_images.npz").write_bytes(b"no archive")
    with pytest.raises(BadInput, match=r"val_images\.npz: cannot be read \(File is not a zip file\)"):
        collect("tieredimagenet_packed", "t", 0, options)
