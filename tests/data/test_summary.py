"""A dataset folder in numbers: counts of the real header and manifest, images of its domains."""

from pathlib import Path

import numpy as np

from repro.data.dataset import open_dataset
from repro.data.summary import summarise_dataset
from tests.conftest import write_tiny_dataset


def test_counts_are_those_of_the_folder(tiny_folder: Path) -> None:
    facts = summarise_dataset(tiny_folder)
    assert (facts.seen, facts.val, facts.unseen) == (8, 6, 7)
    assert facts.images == {"train": 192, "val": 144, "test": 168, "seen_val": 192, "seen_test": 192}
    assert facts.samples == {}


def test_domains_bring_one_image_of_each_of_their_classes(tmp_path: Path) -> None:
    write_tiny_dataset(tmp_path / "shared", seen=12, val=12, test=12, per_class=4, domain_rule="per_image")
    facts, dataset = summarise_dataset(tmp_path / "shared"), open_dataset(tmp_path / "shared")
    assert list(facts.samples) == ["left", "right"]
    for number, images_NHWC in enumerate(facts.samples.values()):
        rows = [
            int(row)
            for label in range(8)
            for row in dataset.roles["train"]
            if dataset.labels_N[row] == label and dataset.domains_N[row] == number
        ][::2]
        np.testing.assert_array_equal(images_NHWC, dataset.images_NHWC[rows])
