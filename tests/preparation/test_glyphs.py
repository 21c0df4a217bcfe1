"""The embedded benchmark: structure, legibility of its classes, bytes, difficulty."""

import hashlib
import itertools
import os
import subprocess
import sys
import unicodedata
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from repro.data.dataset import ROLES, SPLIT_OF_ROLE, SPLITS, Header, open_dataset, write_dataset
from repro.errors import BadInput
from repro.preparation.glyph_analogues import ANALOGUES, CLUTTER
from repro.preparation.glyph_masks import class_name, coverage, covering_fonts, mask
from repro.preparation.glyphs import render_glyphs

Rendered = tuple[Header, np.ndarray, pd.DataFrame]

CLASSES = {
    "mini": {"seen": 64, "val": 16, "test": 20},
    "tiered": {"seen": 120, "val": 40, "test": 60},
    "heterogeneous": {"seen": 100, "val": 100, "test": 100},
    "office": {"seen": 25, "val": 15, "test": 25},
}
STRENGTHS = {"elastic": 0.08, "clutter": 0.45, "occlusion": 0.18, "noise": 0.06, "background": 0.4}
NONE = dict.fromkeys(STRENGTHS, 0.0)
FEW = {"seen": 5, "val": 5, "test": 5}


def per_role(count: int, **others: int) -> dict[str, int]:
    return dict.fromkeys(ROLES, count) | others


@cache
def whole(analogue: str) -> Rendered:
    """All classes of an analogue, three images of each per role."""
    return render_glyphs(analogue, 0, classes=CLASSES[analogue], images=per_role(3), size=28, **STRENGTHS)


def small(seed: int = 0, **changes: object) -> Rendered:
    arguments = {"analogue": "office", "classes": FEW, "images": per_role(4), "size": 20} | STRENGTHS | changes
    return render_glyphs(seed=seed, **arguments)  # type: ignore[arg-type]


def points_of(header: Header) -> list[int]:
    return [int(info.name.split()[0][2:], base=16) for info in header.classes]


def fonts_of(manifest: pd.DataFrame) -> pd.Series:
    return manifest["source"].str.split("/").str[2]


@pytest.mark.parametrize("analogue", ANALOGUES)
def test_classes_images_and_label_order_are_as_asked(analogue: str, tmp_path: Path) -> None:
    header, images_NHWC, manifest = whole(analogue)
    splits = [info.split for info in header.classes]
    assert splits == [split for split in SPLITS for _ in range(CLASSES[analogue][split])]
    assert images_NHWC.shape == (len(manifest), 28, 28, 1)
    assert images_NHWC.dtype == np.uint8
    counts = manifest.groupby(["role", "label"]).size()
    assert set(counts) == {3}
    for role in ROLES:
        assert len(counts[role]) == CLASSES[analogue][SPLIT_OF_ROLE[role]]
        assert {splits[label] for label in counts[role].index} == {SPLIT_OF_ROLE[role]}
    write_dataset(tmp_path / analogue, header, images_NHWC, manifest)
    assert open_dataset(tmp_path / analogue).seen_classes == CLASSES[analogue]["seen"]


@pytest.mark.parametrize("analogue", ANALOGUES)
def test_no_image_occurs_twice(analogue: str) -> None:
    _, images_NHWC, manifest = whole(analogue)
    assert manifest["sha256"].is_unique
    assert manifest["source"].is_unique
    assert manifest["sha256"][7] == hashlib.sha256(images_NHWC[7].tobytes()).hexdigest()


@pytest.mark.parametrize("analogue", ANALOGUES)
def test_every_class_is_a_character_that_its_fonts_really_have(analogue: str) -> None:
    header, _, manifest = whole(analogue)
    points = points_of(header)
    assert [info.name for info in header.classes] == [f"U+{p:04X} {unicodedata.name(chr(p))}" for p in points]
    assert len(set(points)) == len(points)
    assert not set(points) & set(CLUTTER)
    for label, font in set(zip(manifest["label"], fonts_of(manifest), strict=True)):
        assert points[label] in coverage(font)
        assert mask(font, points[label], 40).mean() > 0.03 * 255


@pytest.mark.parametrize("analogue", ANALOGUES)
def test_no_two_classes_look_the_same(analogue: str) -> None:
    header, _, _ = whole(analogue)
    families = {domain.name: domain.families for domain in ANALOGUES[analogue].domains}
    domains_of_group = {group.name: group.domains for group in ANALOGUES[analogue].groups}
    shapes = []
    for point, info in zip(points_of(header), header.classes, strict=True):
        fonts = [f for name in domains_of_group[info.supercategory] for f in covering_fonts(point, families[name])]
        shapes.append(np.mean([mask(font, point, 40) for font in fonts], axis=0).ravel())
    correlations = np.corrcoef(np.stack(shapes))
    assert (correlations - np.eye(len(shapes))).max() <= 0.8 + 1e-9


@pytest.mark.parametrize("analogue", ANALOGUES)
def test_no_class_is_a_missing_glyph_box(analogue: str) -> None:
    header, _, _ = whole(analogue)
    boxes = {chr(point) for point in (0x25A1, 0x25AB, 0x25AF, 0x25FB, 0x25FD, 0x2337, 0x2395, 0x2610)}
    assert not boxes & {chr(point) for point in points_of(header)}


def test_letters_that_share_a_shape_across_scripts_are_one_class_at_most() -> None:
    points = set(points_of(whole("mini")[0]))
    for same in ("AΑА", "HΗН", "OoОΟо○", "XxХΧх", "\u0417З3"):
        assert len(points & set(map(ord, same))) <= 1


def test_super_categories_are_disjoint_between_splits_and_equally_large() -> None:
    header, _, _ = whole("tiered")
    by_split = {split: [i.supercategory for i in header.classes if i.split == split] for split in SPLITS}
    for one, other in itertools.combinations(SPLITS, 2):
        assert not set(by_split[one]) & set(by_split[other])
    assert {split: len(set(names)) for split, names in by_split.items()} == {"seen": 12, "val": 4, "test": 6}
    assert set(pd.Series([info.supercategory for info in header.classes]).value_counts()) == {10}


def test_a_heterogeneous_class_has_one_domain_and_splits_share_domains_evenly() -> None:
    header, _, manifest = whole("heterogeneous")
    assert header.domain_rule == "per_class"
    assert len(header.domains) == 5
    domain_of_label = manifest.groupby("label")["domain"].unique()
    assert {len(domains) for domains in domain_of_label} == {1}
    table = pd.crosstab([info.split for info in header.classes], [domains[0] for domains in domain_of_label])
    assert (table.to_numpy() == 20).all()


def test_an_office_class_has_images_of_every_domain_each_in_its_own_fonts() -> None:
    header, _, manifest = whole("office")
    assert header.domain_rule == "per_image"
    assert set(manifest.groupby(["role", "label"])["domain"].nunique()) == {3}
    used = fonts_of(manifest).groupby(manifest["domain"]).agg(set)
    assert not any(one & other for one, other in itertools.combinations(used, 2))


def test_domains_differ_in_light() -> None:
    _, images_NHWC, manifest = whole("heterogeneous")
    brightness = pd.Series(images_NHWC.mean(axis=(1, 2, 3))).groupby(manifest["domain"]).mean()
    dark_ink = [domain.look.light_ink == 0 for domain in ANALOGUES["heterogeneous"].domains]
    assert brightness[dark_ink].min() > brightness[[not dark for dark in dark_ink]].max() + 50


def test_equal_arguments_give_equal_bytes_on_any_thread_count() -> None:
    first = small()
    torch.set_num_threads(2)
    try:
        second = small()
    finally:
        torch.set_num_threads(1)
    assert first[0] == second[0]
    assert first[1].tobytes() == second[1].tobytes()
    pd.testing.assert_frame_equal(first[2], second[2])


def test_bytes_do_not_depend_on_the_processors_vector_instructions() -> None:
    script = (
        "import hashlib; from tests.preparation.test_glyphs import small; "
        "_, images, manifest = small(); print(hashlib.sha256(images.tobytes()).hexdigest())"
    )
    environment = os.environ | {"ATEN_CPU_CAPABILITY": "default", "OMP_NUM_THREADS": "2"}
    ran = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == hashlib.sha256(small()[1].tobytes()).hexdigest()


def test_another_seed_draws_other_classes_and_images() -> None:
    (one, images_one, _), (other, images_other, _) = small(seed=0), small(seed=1)
    assert set(points_of(one)) != set(points_of(other))
    assert (images_one != images_other).any()


def test_images_of_one_role_do_not_depend_on_the_number_in_another() -> None:
    _, few, manifest_few = small(images=per_role(4))
    _, more, manifest_more = small(images=per_role(4, train=7))
    for role in set(ROLES) - {"train"}:
        np.testing.assert_array_equal(few[manifest_few["role"] == role], more[manifest_more["role"] == role])


def test_without_nuisances_the_paper_is_even_and_the_glyph_stands_out() -> None:
    _, images_NHWC, _ = small(analogue="mini", size=28, **NONE)
    corners = images_NHWC[:, [0, 0, -1, -1], [0, -1, 0, -1], 0].astype(int)
    even = np.ptp(corners, axis=1) == 0
    assert even.mean() > 0.9  # a wide glyph may reach into a corner
    contrast = np.ptp(images_NHWC.reshape(len(images_NHWC), -1), axis=1)
    assert np.quantile(contrast, 0.1) > 0.4 * 255


@pytest.mark.parametrize("nuisance", STRENGTHS)
def test_every_strength_changes_the_images(nuisance: str) -> None:
    _, plain, _ = small(analogue="mini", **NONE)
    _, changed, _ = small(analogue="mini", **NONE | {nuisance: STRENGTHS[nuisance]})
    assert (plain != changed).any(axis=(1, 2, 3)).mean() > 0.8


@pytest.mark.parametrize("analogue", ANALOGUES)
def test_comparing_pixels_is_better_than_chance_and_far_from_enough(analogue: str) -> None:
    _, images_NHWC, manifest = whole(analogue)
    chosen = (manifest["role"] == "test").to_numpy()
    labels = manifest["label"].to_numpy()[chosen]
    pixels_CKD = images_NHWC[chosen][np.argsort(labels, kind="stable")].reshape(len(set(labels)), 3, -1)
    centred_CKD = pixels_CKD - pixels_CKD.mean(axis=-1, keepdims=True)
    centred_CKD /= np.linalg.norm(centred_CKD, axis=-1, keepdims=True)
    random = np.random.default_rng(0)
    tasks_TW = np.stack([random.permutation(len(centred_CKD))[:5] for _ in range(2000)])
    support_TWD, query_TWD = centred_CKD[tasks_TW, 0], centred_CKD[tasks_TW, 1]
    # Polarity is random, so a picture and its negative count as alike.
    guesses_TW = np.abs(query_TWD @ support_TWD.swapaxes(1, 2)).argmax(axis=-1)
    assert 0.22 < (guesses_TW == np.arange(5)).mean() < 0.45


def test_bad_arguments_are_named() -> None:
    with pytest.raises(BadInput, match="analogue 'maxi' is unknown; expected one of mini, tiered"):
        small(analogue="maxi")
    with pytest.raises(BadInput, match="classes of office is .* expected a count of at least 1 for each of"):
        small(classes={"seen": 10, "val": 10})
    with pytest.raises(BadInput, match="images of office is .*'val': 0"):
        small(images=per_role(4, val=0))
    with pytest.raises(BadInput, match=r"seen: 9000 more classes wanted .* ask for fewer classes"):
        small(classes=FEW | {"seen": 9000})


def test_class_names_carry_code_point_and_name() -> None:
    assert class_name(0x41) == "U+0041 LATIN CAPITAL LETTER A"
