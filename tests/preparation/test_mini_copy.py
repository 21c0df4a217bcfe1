"""MiniImageNet as it is passed around: folders, class folders and archives, all forms of lists, copies that leak."""

import json
import shutil
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from repro.data.dataset import open_dataset
from repro.errors import BadInput
from repro.preparation.packing import pack
from repro.preparation.sources import collect
from tests.preparation.raw_trees import SEEN, TEST, VAL, class_table, mini_copy, mini_name, put, write_csv
from tests.preparation.role_checks import assert_roles_are_disjoint, counts, sources

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
ALL = (*SEEN, *VAL, *TEST)
PER_CLASS, HELD_OUT = 8, (2, 3)


@pytest.fixture
def copy(tmp_path: Path) -> dict[str, object]:
    """Options of a copy with eight images per class, its lists in `split/`."""
    table = class_table(tmp_path / "classes.tsv")
    root = mini_copy(tmp_path / "mini", PER_CLASS)
    return {"root": str(root), "classes": str(table), "per_class": PER_CLASS, "held_out": list(HELD_OUT)}


def root_of(copy: dict[str, object]) -> Path:
    return Path(str(copy["root"]))


def taken(copy: dict[str, object], seed: int = 0) -> list[tuple[str, str, str]]:
    """All that decides a dataset's content: (source, class, role) in the stored order."""
    found = collect("miniimagenet", "mini", seed, copy)
    return [(each.raw.source, each.class_name, each.role) for each in found.pictures]


def test_the_copy_alone_is_enough_and_the_extra_sets_are_held_out_of_training(copy):
    found = collect("miniimagenet", "mini", 0, copy)
    expected = (
        {(c, "seen_val"): 2 for c in SEEN} | {(c, "seen_test"): 3 for c in SEEN} | {(c, "train"): 3 for c in SEEN}
    )
    assert counts(found) == expected | {(c, "val"): 8 for c in VAL} | {(c, "test"): 8 for c in TEST}
    assert_roles_are_disjoint(found)
    facts = found.header.provenance
    assert (facts["extra"], facts["held_out"]) == ("held_out", {"seen_val": 2, "seen_test": 3})
    assert facts["root"] == "passed-around copy"


def test_the_seed_decides_what_is_held_out_and_nothing_else(copy):
    assert taken(copy) == taken(copy)
    first, other = (collect("miniimagenet", "mini", seed, copy) for seed in (0, 1))
    assert sources(first, "seen_test") != sources(other, "seen_test")
    assert sources(first, "test") == sources(other, "test")


def in_class_folders(root: Path) -> None:
    for file in sorted((root / "images").iterdir()):
        (root / "images" / file.name[:9]).mkdir(exist_ok=True)
        file.rename(root / "images" / file.name[:9] / file.name)


def lists_beside_images(root: Path) -> None:
    for file in sorted((root / "split").iterdir()):
        file.rename(root / file.name)


def padded_header(root: Path) -> None:
    for file in (root / "split").iterdir():
        file.write_text("\ufeff" + file.read_text().replace("filename,label", "filename, label").replace(",", ", "))


def rows(file: Path) -> list[list[str]]:
    return [line.split(",") for line in file.read_text().split()[1:]]


def json_of_names(root: Path) -> None:
    for file in list((root / "split").iterdir()):
        file.with_suffix(".json").write_text(json.dumps(dict(rows(file))))
        file.unlink()


def json_of_numbers(root: Path) -> None:
    for file in list((root / "split").iterdir()):
        listed = rows(file)
        names = sorted({label for _, label in listed})
        name = {"train": "base", "val": "val", "test": "novel"}[file.stem]
        facts = {
            "label_names": names,
            "image_names": [f"/home/somebody/images/{image}" for image, _ in listed],
            "image_labels": [names.index(label) for _, label in listed],
        }
        (root / "split" / f"{name}.json").write_text(json.dumps(facts))
        file.unlink()


def other_endings(root: Path) -> None:
    for file in list((root / "images").iterdir()):
        file.rename(file.with_suffix(".JPEG"))


@pytest.mark.parametrize(
    "change", [in_class_folders, lists_beside_images, padded_header, json_of_names, json_of_numbers, other_endings]
)
def test_every_layout_and_every_form_of_the_lists_gives_the_same_dataset(copy, change):
    before = taken(copy)
    change(root_of(copy))
    after = taken(copy)
    assert [(Path(source).stem, *rest) for source, *rest in after] == [(Path(s).stem, *rest) for s, *rest in before]


def tar(file: Path, root: Path, mode: str, folders: tuple[str, ...] = ("images", "split")) -> str:
    with tarfile.open(file, mode) as archive:
        for folder in folders:
            archive.add(root / folder, f"./mini-imagenet/{folder}")
    return str(file)


def zipped(file: Path, root: Path, how: int) -> str:
    with zipfile.ZipFile(file, "w", how) as archive:
        for each in sorted(root.rglob("*.*")):
            archive.write(each, each.relative_to(root))
        archive.writestr("__MACOSX/images/._n0000000100000001.jpg", b"of a Mac")
    return str(file)


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "tar.xz", "tar.bz2", "zip", "zip stored", "two parts"])
def test_archives_are_read_in_place_and_pack_to_the_same_bytes(copy, tmp_path: Path, kind: str):
    root, archive = root_of(copy), tmp_path / "mini"
    made = {
        "tar": lambda: tar(archive.with_suffix(".tar"), root, "w"),
        "tar.gz": lambda: tar(archive.with_suffix(".tgz"), root, "w:gz"),
        "tar.xz": lambda: tar(archive.with_suffix(".txz"), root, "w:xz"),
        "tar.bz2": lambda: tar(archive.with_suffix(".tbz"), root, "w:bz2"),
        "zip": lambda: zipped(archive.with_suffix(".zip"), root, zipfile.ZIP_DEFLATED),
        "zip stored": lambda: zipped(archive.with_suffix(".zip"), root, zipfile.ZIP_STORED),
        "two parts": lambda: [
            tar(tmp_path / "lists.tar", root, "w", ("split",)),
            tar(tmp_path / "images.tgz", root, "w:gz", ("images",)),
        ],
    }[kind]()
    packed = {}
    for name, options in (("folder", copy), ("archive", {**copy, "root": made})):
        pack(collect("miniimagenet", "mini", 0, options), tmp_path / "out" / name, size=8)
        packed[name] = [(f.name, f.read_bytes()) for f in sorted((tmp_path / "out" / name).iterdir())]
    assert packed["folder"] == packed["archive"]


def test_a_hard_link_in_a_tar_is_the_file_that_it_links_to(copy, tmp_path: Path):
    root = root_of(copy)
    first, second = (root / "images" / mini_name(VAL[0], rank, "counter") for rank in (1, 2))
    second.unlink()
    second.hardlink_to(first)
    options = {**copy, "root": tar(tmp_path / "linked.tar", root, "w")}
    assert taken(options) == taken(copy)
    assert len(collect("miniimagenet", "mini", 0, options).header.provenance["copies_in_one_split_kept"]) == 1


def test_a_copy_may_have_ilsvrcs_names(copy):
    root = root_of(copy)
    for file in list((root / "images").iterdir()):
        file.rename(root / "images" / f"{file.name[:9]}_{int(file.stem[9:])}.JPEG")
    for file in (root / "split").iterdir():
        write_csv(file, [(f"{name[:9]}_{int(name[9:17])}.JPEG", label) for name, label in rows(file)])
    in_class_folders(root)
    found = collect("miniimagenet", "mini", 0, copy)
    assert found.header.provenance["naming"] == "ilsvrc"
    assert len(found.pictures) == 8 * len(ALL)


def duplicate(root: Path, one: tuple[str, int], other: tuple[str, int]) -> None:
    """Make the first image a copy of the second."""
    first, second = (root / "images" / mini_name(*each, "counter") for each in (one, other))
    shutil.copy(second, first)


def test_of_a_picture_in_two_splits_the_copy_further_from_the_numbers_is_dropped(copy):
    root = root_of(copy)
    duplicate(root, (SEEN[0], 1), (VAL[0], 1))
    duplicate(root, (SEEN[1], 2), (TEST[0], 2))
    duplicate(root, (VAL[0], 3), (TEST[1], 3))
    found = collect("miniimagenet", "mini", 0, copy)
    assert_roles_are_disjoint(found)
    held = {each.raw.source for each in found.pictures}
    dropped = {mini_name(*each, "counter") for each in ((SEEN[0], 1), (SEEN[1], 2), (VAL[0], 3))}
    assert {mini_name(c, rank, "counter") for c in ALL for rank in range(1, 9)} - held == dropped
    said = found.header.provenance["copies_in_two_splits_dropped"]
    assert said[0] == "n0000000100000001.jpg (train) = n0000000300000001.jpg (val)"
    assert len(said) == 3 and said[2].endswith("(val) = n0000000500000003.jpg (test)")


@pytest.mark.parametrize("seed", range(4))
def test_a_picture_twice_in_training_stays_there_and_is_never_held_out(copy, seed: int):
    duplicate(root_of(copy), (SEEN[0], 1), (SEEN[1], 2))
    found = collect("miniimagenet", "mini", seed, copy)
    assert {"n0000000100000001.jpg", "n0000000200000002.jpg"} <= sources(found, "train")
    assert found.header.provenance["copies_in_one_split_kept"] == [
        "n0000000100000001.jpg = n0000000200000002.jpg (train)"
    ]


def vinyals(root: Path) -> None:
    """Lists in which classes have changed places, as in another split."""
    val, test = (root / "split" / f"{name}.csv" for name in ("val", "test"))
    listed = rows(test)
    write_csv(test, rows(val) + listed[:PER_CLASS])
    write_csv(val, listed[PER_CLASS:])


def further_class(root: Path) -> None:
    with (root / "split" / "test.csv").open("a") as stream:
        for rank in range(1, PER_CLASS + 1):
            stream.write(f"{put(root / 'images' / f'n99999999{rank:08d}.jpg').name},n99999999\n")


def half(archive: str) -> str:
    content = Path(archive).read_bytes()
    Path(archive).write_bytes(content[: len(content) // 2])
    return archive


DAMAGE = {
    "a class is missing": (
        lambda root: [each.unlink() for each in (root / "images").glob(f"{TEST[0]}*")],
        r"test\.csv: names n0000000400000001\.jpg and 7 more files, not in .*: class n00000004 is missing; fetch",
    ),
    "an image is missing": (
        lambda root: (root / "images" / "n0000000100000003.jpg").unlink(),
        r"train\.csv: names n0000000100000003\.jpg, not in .*, expected the images of all lists",
    ),
    "a class is missing from the lists": (
        lambda root: write_csv(root / "split" / "test.csv", rows(root / "split" / "test.csv")[PER_CLASS:]),
        r"test\.csv: does not name class n00000004, expected exactly the 2 test classes of Ravi and Larochelle's split",
    ),
    "a further class in the lists": (further_class, r"test\.csv: names class n99999999, expected exactly the 2 test"),
    "lists of another split": (
        vinyals,
        r"val\.csv: names class n00000005 \(0 of no split at all\) and lacks class n00000003.*another split \(Vinyals",
    ),
    "no lists": (lambda root: shutil.rmtree(root / "split"), r"mini: has no lists, expected .*give their folder as"),
    "one list": (lambda root: (root / "split" / "val.csv").unlink(), r"split: has no val\.csv, expected the lists"),
    "no images": (lambda root: shutil.rmtree(root / "images"), r"holds 3 files and none is such an image"),
    "the same image twice": (
        lambda root: shutil.copytree(root / "images", root / "more"),
        r"more/n0\d+\.jpg: the same image twice, expected it once",
    ),
    "lists of the other naming": (
        lambda root: [
            write_csv(file, [(f"{n[:9]}_{int(n[9:17])}.JPEG", c) for n, c in rows(file)])
            for file in (root / "split").iterdir()
        ],
        r"which has names such as n0\d+\.jpg; expected lists and images of the same naming",
    ),
    "JSON that is none": (
        lambda root: [file.rename(file.with_suffix(".json")) for file in list((root / "split").iterdir())],
        r"train\.json: cannot be read \(.*\), expected a JSON of file name → class",
    ),
    "JSON with bare numbers": (
        lambda root: [
            file.rename(file.with_suffix(".json")).write_text(json.dumps({n: 3 for n, _ in listed}))
            for file in list((root / "split").iterdir())
            if (listed := rows(file))
        ],
        r"train\.json: gives n0\d+\.jpg the label 3, expected its class such as n01532829",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGE)
def test_a_bad_copy_is_told_in_one_sentence(copy, case: str):
    damage, message = DAMAGE[case]
    damage(root_of(copy))
    with pytest.raises(BadInput, match=message) as raised:
        collect("miniimagenet", "mini", 0, copy)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"held_out": [5, 5]}, r"class n00000001 has 8 images besides the training images, expected 10"),
        ({"held_out": [4, 4]}, r"class n00000001 has no image for the role train"),
        ({"held_out": [2]}, r"held_out is \[2\], expected two positive numbers \[seen_val, seen_test\]"),
        ({"held_out": [0, 2]}, r"held_out is \[0, 2\], expected two positive numbers"),
        (
            {"extra": "published"},
            r"holds no more than MiniImageNet's own images, and extra is published, expected ILSVRC",
        ),
        ({"crop": "center"}, r"crop is 'center', expected: input should be 'squashed' or 'center224'"),
        ({"root": []}, r"root is an empty list, expected MiniImageNet's folder"),
    ],
)
def test_options_that_a_copy_cannot_fulfil_are_told(copy, option: dict[str, object], message: str):
    with pytest.raises(BadInput, match=message):
        collect("miniimagenet", "mini", 0, {**copy, **option})


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "zip", "cut between files"])
def test_a_half_downloaded_archive_is_told(copy, tmp_path: Path, kind: str):
    root = root_of(copy)
    if kind == "zip":
        archive = half(zipped(tmp_path / "mini.zip", root, zipfile.ZIP_STORED))
    else:
        archive = tar(tmp_path / f"mini.{kind[:6]}", root, "w:gz" if kind == "tar.gz" else "w")
    if kind == "cut between files":
        with tarfile.open(archive) as whole:
            end = whole.getmembers()[9].offset
        Path(archive).write_bytes(Path(archive).read_bytes()[:end])
    elif kind != "zip":
        half(archive)
    with pytest.raises(BadInput, match=r"mini\.\w+.*: is no whole archive \(.*\), perhaps half-downloaded; expected"):
        collect("miniimagenet", "mini", 0, {**copy, "root": archive})


def test_a_damaged_file_in_a_zip_is_named(copy, tmp_path: Path):
    archive = Path(zipped(tmp_path / "mini.zip", root_of(copy), zipfile.ZIP_STORED))
    content = (root_of(copy) / "images" / "n0000000300000004.jpg").read_bytes()
    archive.write_bytes(archive.read_bytes().replace(content, content[:-30] + b"x" * 30))
    with pytest.raises(
        BadInput, match=r"mini\.zip: images/n0000000300000004\.jpg: is not what the archive's table says"
    ):
        pack(collect("miniimagenet", "mini", 0, {**copy, "root": str(archive)}), tmp_path / "out", size=8)


@pytest.mark.parametrize("name", ["../../outside.jpg", "images/\x1b[2J.jpg"])
def test_an_archive_with_names_that_lead_out_is_refused(copy, tmp_path: Path, name: str):
    with tarfile.open(tmp_path / "mini.tar", "w") as archive:
        archive.add(put(tmp_path / "x.jpg"), name, filter=None)
    with pytest.raises(BadInput, match=r"mini\.tar: holds the name .*, expected plain names below the archive"):
        collect("miniimagenet", "mini", 0, {**copy, "root": str(tmp_path / "mini.tar")})


def test_center224_is_named_in_the_header_and_small_squares_are_counted(copy, tmp_path: Path):
    put(root_of(copy) / "images" / "n0000000300000004.jpg", size=(40, 40))
    for crop, without_effect in (("squashed", None), ("center224", 1)):
        pack(collect("miniimagenet", "mini", 0, {**copy, "crop": crop}), tmp_path / crop, size=8)
        facts = open_dataset(tmp_path / crop).header.provenance
        assert (facts["crop"], facts.get("crop_without_effect")) == (crop, without_effect)
    one, other = (open_dataset(tmp_path / crop).images_NHWC for crop in ("squashed", "center224"))
    assert (one != other).any(axis=(1, 2, 3)).sum() == len(one) - 1


ARCHIVES = [SHARED / f"miniimagenet_32px_{part}.tar.gz" for part in ("seen", "unseen")]


@pytest.mark.skipif(not all(each.exists() for each in ARCHIVES), reason="no ../shared/data/miniimagenet_32px_*.tar.gz")
def test_the_public_copy_has_its_sixty_thousand_images_and_its_eight_pairs():
    found = collect("miniimagenet", "mini", 0, {"root": [str(each) for each in ARCHIVES]})
    facts = found.header.provenance
    assert Counter(each.role for each in found.pictures) == {
        "train": 64 * 480 - 6, "seen_val": 64 * 60, "seen_test": 64 * 60, "val": 16 * 600, "test": 20 * 600,
    }  # fmt: skip
    assert len(facts["copies_in_two_splits_dropped"]) == 6
    assert len(facts["copies_in_one_split_kept"]) == 2
    assert all("(train) = " in each and each.endswith("(val)") for each in facts["copies_in_two_splits_dropped"])
