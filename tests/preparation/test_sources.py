"""The other raw layouts, built small: counts, disjoint roles by content, one sentence per bad input; the registry."""

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

from repro.data.dataset import open_dataset
from repro.errors import BadInput
from repro.preparation.packing import pack
from repro.preparation.sources import SOURCES, collect, options_of
from repro.preparation.sources.cub import cropping
from repro.preparation.sources.heterogeneous import read_cars
from tests.preparation import raw_trees
from tests.preparation.raw_trees import put
from tests.preparation.role_checks import assert_roles_are_disjoint, role_counts

# ── Heterogeneous


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The five datasets with 7 classes each; birds have 10 images per class, the others 14."""
    root = tmp_path_factory.mktemp("five sets")
    return {
        "aircraft": raw_trees.aircraft(root / "fgvc-aircraft-2013b", 7, 14),
        "birds": raw_trees.birds(root / "birds", 7, 10),
        "cars": raw_trees.cars_devkit(root / "cars", 7, 14),
        "dogs": raw_trees.folder_tree(root / "dogs" / "Images", [f"n0208{n}-dog" for n in range(7)], 14).parent,
        "indoor": raw_trees.folder_tree(root / "indoor" / "Images", [f"room {n}" for n in range(7)], 14).parent,
        "classes": [3, 2, 2],
        "per_class": 8,
        "extra": 5,
        "least_extra": 2,
    }


def test_heterogeneous_has_its_counts_in_every_domain(five):
    collection = collect("heterogeneous", "heterogeneous", 0, five)
    assert collection.header.domain_rule == "per_class"
    assert collection.header.domains == ("aircraft", "bird", "car", "dog", "indoor scene")
    for domain in collection.header.domains:
        mine = [picture for picture in collection.pictures if picture.domain == domain]
        splits = Counter(info.split for info in collection.header.classes if info.name.startswith(f"{domain}/"))
        assert splits == {"seen": 3, "val": 2, "test": 2}
        extra = {"seen_val": 3, "seen_test": 3} if domain == "bird" else {"seen_val": 6, "seen_test": 9}
        assert Counter(picture.role for picture in mine) == {"train": 24, "val": 16, "test": 16, **extra}
    assert_roles_are_disjoint(collection)


def test_aircraft_images_lose_their_banner(five, tmp_path: Path):
    pack(collect("heterogeneous", "heterogeneous", 0, five), tmp_path / "out", size=8)
    dataset = open_dataset(tmp_path / "out")
    aircraft = dataset.images_NHWC[(dataset.domains_N == 0).numpy()]
    assert aircraft[:, -1].mean() < 140 < 255 * 0.9


def test_cars_read_the_same_from_all_three_layouts(tmp_path: Path):
    devkit = read_cars(raw_trees.cars_devkit(tmp_path / "devkit", 3, 6))
    single = read_cars(raw_trees.cars_single(tmp_path / "single", 3, 6))
    folders = read_cars(raw_trees.folder_tree(tmp_path / "folders", ["Car 0", "Car 1", "Car 2"], 6))
    sizes = [{name: len(images) for name, images in each.items()} for each in (devkit, single, folders)]
    assert sizes[0] == sizes[1] == sizes[2] == {"Car 0": 6, "Car 1": 6, "Car 2": 6}


@pytest.mark.parametrize(
    ("key", "file", "content", "message"),
    [
        ("aircraft", "data/images_variant_test.txt", b"9999999 Boeing", r"names .*9999999\.jpg, which does not exist"),
        ("aircraft", "data/images_variant_test.txt", b"../../x Boeing", r"names .*which does not exist|lies outside"),
        ("aircraft", "data/images_variant_test.txt", None, r"images_variant_test\.txt: cannot be read"),
        ("birds", "CUB_200_2011/classes.txt", b"1 only", r"gives image \d+ the label 2, expected one of the 1"),
        ("birds", "CUB_200_2011/images.txt", b"alone", r"has the line 'alone', expected a number and a name"),
        ("birds", "CUB_200_2011/images.txt", b"1 ../../../../../etc/passwd", r"lies outside .*birds"),
        ("cars", "devkit/cars_meta.mat", b"no matlab file", r"cars_meta\.mat: cannot be read"),
        ("cars", "cars_test_annos_withlabels.mat", None, r"cars_test_annos_withlabels\.mat: cannot be read"),
    ],
)
def test_heterogeneous_bad_annotations_are_one_sentence(five, tmp_path: Path, *, key, file, content, message):
    copy = tmp_path / key
    shutil.copytree(five[key], copy)
    (copy / file).unlink() if content is None else (copy / file).write_bytes(content)
    with pytest.raises(BadInput, match=message) as raised:
        collect("heterogeneous", "h", 0, {**five, key: copy})
    assert "\n" not in str(raised.value)


def test_heterogeneous_tells_which_domain_is_too_small(five):
    with pytest.raises(BadInput, match=r"bird: 0 of 7 classes left have the 11 images that a seen class needs"):
        collect("heterogeneous", "h", 0, {**five, "least_extra": 3})


# ── Office-Home and any folder


@pytest.mark.parametrize("spelling", ["Real World", "RealWorld", "Real_World"])
def test_office_uses_three_domains_and_holds_out_per_domain(tmp_path: Path, spelling: str):
    for domain in ("Art", "Clipart", "Product", spelling):
        raw_trees.folder_tree(tmp_path / domain, [f"Alarm_{n}" for n in range(6)], 9 + len(domain) % 3)
    collection = collect("office_home", "office", 0, {"root": tmp_path, "classes": [2, 1, 3], "extra": 4})
    assert collection.header.domains == ("Clipart", "Product", "Real World")
    assert collection.header.domain_rule == "per_image"
    for domain in collection.header.domains:
        roles = Counter(picture.role for picture in collection.pictures if picture.domain == domain)
        assert roles["seen_val"] == roles["seen_test"] == 2 * 2
        folder = {"Real World": spelling}.get(domain, domain)
        assert roles.total() == sum(1 for _ in (tmp_path / folder).rglob("*.jpg"))
    assert_roles_are_disjoint(collection)


def test_office_without_a_domain_is_told(tmp_path: Path):
    raw_trees.folder_tree(tmp_path / "Clipart", ["a"], 1)
    with pytest.raises(BadInput, match=r"holds \['Clipart'\] but not Product, expected the folders Clipart, Product"):
        collect("office_home", "office", 0, {"root": tmp_path})


def test_a_folder_of_classes_gives_the_asked_counts(tmp_path: Path):
    raw_trees.folder_tree(tmp_path, [f"Früh stück {n}" for n in range(6)], 12, kind="PNG")
    (tmp_path / ".DS_Store").write_bytes(b"x")
    (tmp_path / "Früh stück 0" / "notes.txt").write_text("no image")
    options = {"root": tmp_path, "classes": [2, 2, 2], "extra": 4, "per_class": 5}
    collection = collect("image_folder", "own", 0, options)
    assert role_counts(collection) == {"train": 10, "val": 10, "test": 10, "seen_val": 4, "seen_test": 4}
    assert collection.header.domain_rule == "none"
    assert_roles_are_disjoint(collection)


def test_repeated_images_are_used_once_and_counted(tmp_path: Path):
    raw_trees.folder_tree(tmp_path, "abcd", 8)
    for name in "abc":
        shutil.copy(tmp_path / "d" / "0.jpg", tmp_path / name / "copy.jpg")
    collection = collect("image_folder", "own", 0, {"root": tmp_path, "classes": [2, 1, 1], "extra": 2})
    assert collection.header.provenance["repeated_images_dropped"] == 3
    assert_roles_are_disjoint(collection)


def test_a_class_in_some_domains_only_is_named(tmp_path: Path):
    for domain, names in {"x": "ab", "y": "ab", "z": "a"}.items():
        raw_trees.folder_tree(tmp_path / domain, names, 3)
    with pytest.raises(BadInput, match=r"class b is in 2 of 3 domains and others are in more"):
        collect("image_folder", "own", 0, {"root": tmp_path, "classes": [1, 1, 1], "extra": 2})


def test_symbolic_link_loops_end_in_a_sentence(tmp_path: Path):
    raw_trees.folder_tree(tmp_path, "abc", 8)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(BadInput, match=r"cannot be listed \(Too many levels of symbolic links\)"):
        collect("image_folder", "own", 0, {"root": tmp_path, "classes": [1, 1, 1], "extra": 2})
    (tmp_path / "loop").unlink()
    (tmp_path / "a" / "up").symlink_to(tmp_path)  # a folder that contains itself: listed two levels deep at most
    with pytest.raises(BadInput, match=r"up holds no JPEG or PNG, expected a folder of images per class"):
        collect("image_folder", "own", 0, {"root": tmp_path, "classes": [1, 1, 1], "extra": 2})


@pytest.mark.parametrize(
    ("build", "options", "message"),
    [
        (lambda root: None, {}, r"raw: cannot be listed \(No such file or directory\), expected a folder"),
        (lambda root: root.write_text("file"), {}, r"raw: cannot be listed \(Not a directory\)"),
        (lambda root: root.mkdir(), {}, r"raw: holds no folders"),
        (lambda root: (root / "a").mkdir(parents=True), {}, r"a holds no JPEG or PNG, expected a folder of images"),
        (lambda root: raw_trees.folder_tree(root, "abc", 2), {}, r"0 of 3 classes left have the 3 images that"),
        (lambda root: raw_trees.folder_tree(root, "ab", 9), {}, r"0 of 0 classes left"),
        (lambda root: raw_trees.folder_tree(root, "abc", 9), {"extra": 1}, r"extra is 1 .*expected at least 2"),
        (lambda root: raw_trees.folder_tree(root, "abc", 9), {"classes": [1, 1]}, r"expected three positive numbers"),
        (lambda root: put(root / os.fsdecode(b"\xff") / "x.jpg"), {}, r"expected names in UTF-8; rename it"),
    ],
)  # fmt: skip
def test_bad_folders_are_one_sentence(tmp_path: Path, build, options: dict, message: str):
    build(tmp_path / "raw")
    with pytest.raises(BadInput, match=message) as raised:
        collect("image_folder", "own", 0, {"root": tmp_path / "raw", "classes": [1, 1, 1], "extra": 2, **options})
    assert "\n" not in str(raised.value)


# ── The registry


def test_options_are_checked_by_name(tmp_path: Path):
    with pytest.raises(BadInput, match="source is 'imagenet', expected one of miniimagenet, "):
        collect("imagenet", "x", 0, {})
    with pytest.raises(
        BadInput,
        match="root is missing; unknown option roots; remove it or correct its spelling; it takes root, classes, extra",
    ):
        collect("office_home", "x", 0, {"roots": tmp_path})
    with pytest.raises(BadInput, match="source office_home: root is missing; it takes root, classes, extra"):
        collect("office_home", "x", 0, {})


def test_every_source_names_its_options_and_its_paper_scale_defaults():
    assert options_of("miniimagenet")["per_class"].default == 600
    assert options_of("miniimagenet")["extra_per_half"].default == 200
    assert options_of("heterogeneous")["classes"].default == (20, 20, 20)
    assert options_of("office_home")["classes"].default == (25, 15, 25)
    assert all(options_of(source) for source in SOURCES)


@pytest.mark.parametrize("source", SOURCES)
def test_every_option_of_every_source_is_explained_in_its_docstring(source: str):
    assert {key: option.meaning for key, option in options_of(source).items() if len(option.meaning) < 10} == {}
    assert options_of(source)["crop"].default == "squashed"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": "many"}, r"source office_home: classes is 'many', expected: input should be a valid array"),
        ({"extra": "ten"}, r"source office_home: extra is 'ten', expected: input should be a valid integer"),
        ({"classes": [1, 2, None]}, r"source office_home: classes\.2 is None, expected: input should be"),
    ],
)
def test_options_of_the_wrong_kind_are_named(tmp_path: Path, options: dict, message: str):
    with pytest.raises(BadInput, match=message):
        collect("office_home", "x", 0, {"root": tmp_path, **options})


def test_the_name_of_the_dataset_does_not_change_what_is_drawn(tmp_path: Path):
    raw_trees.folder_tree(tmp_path, "abcdef", 8)
    options = {"root": tmp_path, "classes": [2, 2, 2], "extra": 2}
    one, other = (collect("image_folder", name, 0, options) for name in ("one", "other"))
    assert [(p.raw.source, p.role) for p in one.pictures] == [(p.raw.source, p.role) for p in other.pictures]


def cub(root: Path, cropped: bool, with_boxes: bool) -> Path:
    """CUB whose whole pictures have a long side of 500 pixels, or whose pictures are as large as the boxes."""
    raw_trees.birds(root, 3, 8)
    home = root / "CUB_200_2011"
    lines = []
    for place, line in enumerate((home / "images.txt").read_text().splitlines()):
        number, path = line.split()
        box = (100 + 10 * place, 90 + 7 * place)
        Image.new("RGB", box if cropped else (500, 333 + place)).save(home / "images" / path)
        lines.append(f"{number} 20.0 30.0 {box[0]}.0 {box[1]}.0")
    if with_boxes:
        (home / "bounding_boxes.txt").write_text("\n".join(lines) + "\n")
    return root


@pytest.mark.parametrize("with_boxes", [True, False])
def test_birds_cropped_to_their_boxes_are_told_from_whole_pictures(tmp_path: Path, with_boxes: bool):
    assert cropping(cub(tmp_path / "whole", False, with_boxes)) == "whole pictures"
    assert cropping(cub(tmp_path / "cropped", True, with_boxes)) == "cropped to the bounding boxes"


def test_birds_that_were_resized_to_one_size_tell_nothing(tmp_path: Path):
    home = cub(tmp_path, True, True) / "CUB_200_2011" / "images"
    for file in home.glob("*/*.jpg"):
        Image.new("RGB", (84, 84)).save(file)
    assert cropping(tmp_path) == "not to be told whole or cropped"


def test_boxes_that_are_none_are_told(tmp_path: Path):
    (cub(tmp_path, True, True) / "CUB_200_2011" / "bounding_boxes.txt").write_text("1 2 3\n")
    with pytest.raises(BadInput, match=r"bounding_boxes\.txt: has the line '1 2 3', expected a number, x, y, width"):
        cropping(tmp_path)
