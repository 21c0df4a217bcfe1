"""The packed dataset: label order, contiguous roles, and content that is checked before use."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from repro.data.dataset import MANIFEST, ROLES, SPLIT_OF_ROLE, Dataset, open_dataset
from repro.errors import BadInput
from tests.conftest import write_tiny_dataset
from tests.faults.scene import flip


def test_seen_classes_come_first_and_roles_are_contiguous(tiny: Dataset) -> None:
    splits = [info.split for info in tiny.header.classes]
    assert splits == sorted(splits, key=["seen", "val", "test"].index)
    assert torch.equal(torch.cat([tiny.roles[role] for role in ROLES]), torch.arange(len(tiny.labels_N)))
    for role in ROLES:
        labels = {int(label) for label in tiny.labels_N[tiny.roles[role]]}
        assert labels == set(tiny.labels_of(SPLIT_OF_ROLE[role]).tolist())


def test_every_row_keeps_its_image(tiny_folder: Path, tiny: Dataset) -> None:
    import hashlib

    hashes = pd.read_parquet(tiny_folder / MANIFEST)["sha256"]
    for row in range(0, len(hashes), 17):
        assert hashlib.sha256(np.ascontiguousarray(tiny.images_NHWC[row]).tobytes()).hexdigest() == hashes[row]


def test_two_writes_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("first", "second"):
        write_tiny_dataset(tmp_path / name)
    for file in ("images.npy", "manifest.parquet", "dataset.json"):
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes()


@pytest.mark.parametrize("file", ["manifest.parquet", "dataset.json"])
def test_a_changed_description_is_named_before_anything_is_read(file: str, tmp_path: Path) -> None:
    write_tiny_dataset(tmp_path / "tiny")
    flip(tmp_path / "tiny" / file)
    with pytest.raises(BadInput, match=file):
        open_dataset(tmp_path / "tiny")


def test_a_missing_folder_names_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no dataset\.json.*dvc repro splits"):
        open_dataset(tmp_path / "absent")
