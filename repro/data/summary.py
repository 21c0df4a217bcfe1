"""A dataset folder in numbers, for readers: counts, and some images where it has domains."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from repro.data.dataset import Dataset, open_dataset

SAMPLES_PER_DOMAIN = 8


@dataclass(frozen=True)
class DatasetSummary:
    """Numbers of classes by split, of images by role, and some images of each domain (N×H×W×C, uint8);
    names of classes in label order, and images by their rows."""

    seen: int
    val: int
    unseen: int
    images: Mapping[str, int]
    samples: Mapping[str, np.ndarray]
    classes: tuple[str, ...]
    pictures_of: Callable[[np.ndarray], np.ndarray]


def summarise_dataset(folder: Path) -> DatasetSummary:
    """Read one dataset folder. Raises BadInput where the folder holds no dataset."""
    dataset = open_dataset(folder)
    classes = Counter(info.split for info in dataset.header.classes)
    return DatasetSummary(
        classes["seen"],
        classes["val"],
        classes["test"],
        {role: len(rows) for role, rows in dataset.roles.items()},
        {} if dataset.header.domain_rule == "none" else _samples(dataset),
        tuple(info.name for info in dataset.header.classes),
        dataset.pixels.of,
    )


def _samples(dataset: Dataset) -> dict[str, np.ndarray]:
    """The first training image of the first few classes of each domain; equal classes where domains share them."""
    train = pd.DataFrame({"label": dataset.labels_N, "domain": dataset.domains_N}).loc[dataset.roles["train"].numpy()]
    samples = {}
    for number, domain in enumerate(dataset.header.domains):
        rows = train[train["domain"] == number].drop_duplicates("label").index[:SAMPLES_PER_DOMAIN]
        samples[domain] = dataset.pixels.of(rows.to_numpy())
    return samples
