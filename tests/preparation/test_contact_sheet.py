"""The contact sheet shows the dataset's own pixels, the same way every time."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from repro.data.dataset import ROLES, Dataset
from repro.data.pixels import PixelsInMemory
from repro.preparation import contact_sheet
from repro.preparation.contact_sheet import write_contact_sheet

TILE, LEFT = contact_sheet.TILE, contact_sheet.MARGIN + contact_sheet.LABEL_WIDTH
TOP = contact_sheet.MARGIN + contact_sheet.TITLE_HEIGHT + contact_sheet.HEADING_HEIGHT


def sheet_of(dataset: Dataset, folder: Path, **arguments: int) -> np.ndarray:
    write_contact_sheet(folder / "sheet.png", dataset, **arguments)
    with Image.open(folder / "sheet.png") as picture:
        assert picture.format == "PNG"
        return np.asarray(picture)


def enlarged(image_HWC: np.ndarray) -> np.ndarray:
    picture = Image.fromarray(image_HWC.squeeze(-1)).resize((TILE, TILE), Image.Resampling.NEAREST)
    return np.asarray(picture.convert("RGB"))


def contains(sheet: np.ndarray, tile: np.ndarray) -> bool:
    """Look for the tile wherever its first row's red channel occurs."""
    starts = np.lib.stride_tricks.sliding_window_view(sheet[..., 0], TILE, axis=1)
    places = np.argwhere((starts == tile[0, :, 0]).all(axis=-1))
    return any(np.array_equal(sheet[top : top + TILE, left : left + TILE], tile) for top, left in places)


def test_the_first_tile_is_the_first_training_image(tiny: Dataset, tmp_path: Path) -> None:
    sheet = sheet_of(tiny, tmp_path)
    first = tiny.images_NHWC[tiny.roles["train"][0]]
    np.testing.assert_array_equal(sheet[TOP : TOP + TILE, LEFT : LEFT + TILE], enlarged(first))


def test_rows_and_width_set_the_size(tiny: Dataset, tmp_path: Path) -> None:
    small, large = sheet_of(tiny, tmp_path, rows=2, width=6), sheet_of(tiny, tmp_path, rows=4, width=12)
    step = TILE + contact_sheet.GAP
    assert large.shape[0] - small.shape[0] == 3 * 2 * step  # three splits, two more rows each
    assert large.shape[1] - small.shape[1] == 6 * step


def test_asking_for_more_than_there_is_shows_all(tiny: Dataset, tmp_path: Path) -> None:
    sheet = sheet_of(tiny, tmp_path, rows=1000, width=90)
    step, classes = TILE + contact_sheet.GAP, len(tiny.header.classes)
    headings = contact_sheet.TITLE_HEIGHT + 3 * contact_sheet.HEADING_HEIGHT  # three splits
    assert sheet.shape[0] == 2 * contact_sheet.MARGIN + headings + classes * step
    rows_N = tiny.roles["test"][tiny.labels_N[tiny.roles["test"]] == classes - 1]
    top, left = sheet.shape[0] - contact_sheet.MARGIN - step, LEFT + (len(rows_N) - 1) * step
    last = enlarged(tiny.images_NHWC[rows_N[-1]])
    np.testing.assert_array_equal(sheet[top : top + TILE, left : left + TILE], last)


def test_every_role_and_domain_is_shown(tiny_domains: Dataset, tmp_path: Path) -> None:
    sheet = sheet_of(tiny_domains, tmp_path, rows=4, width=12)
    for domain in range(len(tiny_domains.header.domains)):
        for role in ROLES:
            rows_N = tiny_domains.roles[role]
            first = rows_N[tiny_domains.domains_N[rows_N] == domain][0]
            assert contains(sheet[:, LEFT:], enlarged(tiny_domains.images_NHWC[first]))


def test_equal_datasets_give_equal_files(tiny: Dataset, tmp_path: Path) -> None:
    write_contact_sheet(tmp_path / "one.png", tiny)
    write_contact_sheet(tmp_path / "two.png", tiny)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


@pytest.mark.parametrize("side", [12, 84])
def test_colour_images_of_any_size_fit_in(tiny: Dataset, tmp_path: Path, side: int) -> None:
    colour = np.zeros((len(tiny.labels_N), side, side, 3), dtype=np.uint8)
    colour[..., 0] = 200
    sheet = sheet_of(replace(tiny, pixels=PixelsInMemory(colour)), tmp_path)
    assert (sheet[TOP : TOP + TILE, LEFT : LEFT + TILE] == (200, 0, 0)).all()


def test_long_class_names_are_cut_before_the_images(tiny: Dataset, tmp_path: Path) -> None:
    classes = tuple(replace(info, name=info.name * 40, supercategory="süper " * 90) for info in tiny.header.classes)
    sheet = sheet_of(replace(tiny, header=replace(tiny.header, classes=classes)), tmp_path)
    assert (sheet[TOP : TOP + TILE, LEFT - 8 : LEFT] == 255).all()
