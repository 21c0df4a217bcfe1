"""Images are checked where they are read: all of them by one hash, once; a few by their own."""

from pathlib import Path

import numpy as np
import pytest

from repro.data.dataset import Dataset, open_dataset
from repro.errors import BadInput
from repro.files import sums
from tests.conftest import write_tiny_dataset

ROW = 3
NAMED = r"images\.npy: content is .* expected .*; make .* again with `dvc repro -f -s splits@tiny`"


@pytest.fixture
def damaged(tmp_path: Path) -> Dataset:
    """A dataset in which one pixel of image ROW has another bit."""
    write_tiny_dataset(tmp_path / "tiny" / "0")
    images_NHWC = np.load(tmp_path / "tiny" / "0" / "images.npy", mmap_mode="r+")
    images_NHWC[ROW, 3, 3] ^= 1
    images_NHWC.flush()
    return open_dataset(tmp_path / "tiny" / "0")


def test_some_images_are_those_of_the_whole_array(tiny_folder: Path) -> None:
    rows = np.array([700, 0, 41, 41])
    images_NHWC = open_dataset(tiny_folder).pixels.of(rows)
    np.testing.assert_array_equal(images_NHWC, np.load(tiny_folder / "images.npy")[rows])


def test_a_flipped_bit_is_named_with_the_next_step_by_whoever_reads_it(damaged: Dataset) -> None:
    assert len(damaged.pixels.of(np.array([ROW - 1, ROW + 1]))) == 2
    with pytest.raises(BadInput, match=NAMED):
        damaged.pixels.of(np.array([ROW - 1, ROW]))
    with pytest.raises(BadInput, match=NAMED):
        damaged.pixels.all()


@pytest.mark.parametrize("spoil", [Path.unlink, lambda file: file.write_bytes(b"")], ids=["missing", "empty"])
def test_a_file_that_is_not_all_there_is_named(spoil, tmp_path: Path) -> None:
    write_tiny_dataset(tmp_path / "tiny" / "0")
    spoil(tmp_path / "tiny" / "0" / "images.npy")
    pixels = open_dataset(tmp_path / "tiny" / "0").pixels
    for read in (pixels.all, lambda: pixels.of(np.array([0]))):
        with pytest.raises(BadInput, match=NAMED):
            read()


def test_the_whole_array_is_hashed_once_however_often_it_is_opened(tmp_path: Path, monkeypatch) -> None:
    write_tiny_dataset(tmp_path / "tiny" / "0")
    hashed: list[str] = []
    real = sums.sha256
    monkeypatch.setattr(sums, "sha256", lambda path: hashed.append(path.name) or real(path))
    for _ in range(2):
        dataset = open_dataset(tmp_path / "tiny" / "0")
        dataset.pixels.of(np.array([1]))
        assert dataset.images_NHWC is dataset.images_NHWC
        dataset.pixels.of(np.array([1]))
    assert hashed.count("images.npy") == 1
