"""What the paper stage tells the report about a dataset: counts, and some images where it has domains."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from repro.data.dataset import Dataset, open_dataset
from repro.report.facts import DatasetFacts, DomainSamples

SAMPLES_PER_DOMAIN = 8


def dataset_facts(folder: Path, title: str = "") -> DatasetFacts:
    """Read one dataset folder; `title` is how captions call it, its own name where empty.

    Raises BadInput where the folder holds no dataset.
    """
    dataset = open_dataset(folder)
    header = dataset.header
    classes = Counter(info.split for info in header.classes)
    return DatasetFacts(
        title or header.name,
        classes["seen"],
        classes["val"],
        classes["test"],
        {role: len(rows) for role, rows in dataset.roles.items()},
        () if header.domain_rule == "none" else _samples(dataset),
    )


def _samples(dataset: Dataset) -> tuple[DomainSamples, ...]:
    """The first training image of the first few classes of each domain; equal classes where domains share them."""
    train = pd.DataFrame({"label": dataset.labels_N, "domain": dataset.domains_N}).loc[dataset.roles["train"].numpy()]
    samples = []
    for number, domain in enumerate(dataset.header.domains):
        rows = train[train["domain"] == number].drop_duplicates("label").index[:SAMPLES_PER_DOMAIN]
        samples.append(DomainSamples(domain, np.array(dataset.images_NHWC[rows.to_numpy()])))
    return tuple(samples)
