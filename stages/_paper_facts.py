"""What the paper stage tells the report about a dataset: counts, and some images where it has domains."""

from pathlib import Path

import numpy as np
import pandas as pd

from repro.data.dataset import ROLES, map_images, read_header, read_manifest
from repro.report.facts import DatasetFacts, DomainSamples

SAMPLES_PER_DOMAIN = 8


def dataset_facts(folder: Path, title: str = "") -> DatasetFacts:
    """Read one dataset folder; `title` is how captions call it, its own name where empty.

    Raises BadInput where the folder holds no dataset.
    """
    header, _ = read_header(folder)
    manifest = read_manifest(folder)
    classes = pd.Series([info.split for info in header.classes]).value_counts()
    images = manifest["role"].value_counts()
    domains = () if header.domain_rule == "none" else header.domains
    return DatasetFacts(
        title or header.name,
        int(classes.get("seen", 0)),
        int(classes.get("val", 0)),
        int(classes.get("test", 0)),
        {role: int(images.get(role, 0)) for role in ROLES},
        _samples(folder, manifest, domains),
    )


def _samples(folder: Path, manifest: pd.DataFrame, domains: tuple[str, ...]) -> tuple[DomainSamples, ...]:
    """The first training image of the first few classes of each domain; equal classes where domains share them."""
    if not domains:
        return ()
    images_NHWC = map_images(folder)
    train = manifest[manifest["role"] == "train"]
    samples = []
    for number, domain in enumerate(domains):
        rows = train[train["domain"] == number].drop_duplicates("label").index[:SAMPLES_PER_DOMAIN]
        samples.append(DomainSamples(domain, np.array(images_NHWC[rows.to_numpy()])))
    return tuple(samples)
