"""Fixtures shared by the suite: tiny datasets written through the real writer."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import settings

from repro.data.dataset import ClassInfo, Dataset, DomainRule, Header, open_dataset, write_dataset
from repro.files import SEAL, add_to_seal, sha256
from repro.paths import ORIGIN

pytest_plugins = ["tests.counting", "tests.pipeline.workspace"]

torch.set_num_threads(1)
# Properties are tried on the same examples everywhere, however long a loaded machine takes for one.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")

ROLES_OF_SPLIT = {"seen": ("train", "seen_val", "seen_test"), "val": ("val",), "test": ("test",)}


def write_tiny_dataset(  # noqa: PLR0913 - a fixture's knobs
    folder: Path,
    *,
    seen: int = 8,
    val: int = 6,
    test: int = 7,
    per_class: int = 24,
    domain_rule: DomainRule = "none",
    size: int = 12,
    noise: float = 24.0,
) -> None:
    """Write noisy copies of one random pattern per class; a domain shifts the brightness."""
    random = np.random.default_rng(0)
    domains = ("all",) if domain_rule == "none" else ("left", "right")
    classes = tuple(
        ClassInfo(name=f"{split}-{number}", split=split)
        for split, count in (("seen", seen), ("val", val), ("test", test))
        for number in range(count)
    )
    images, rows = [], []
    for label, info in enumerate(classes):
        pattern = random.uniform(40, 215, (size, size, 1))
        for role in ROLES_OF_SPLIT[info.split]:
            for number in range(per_class):
                domain = {"none": 0, "per_class": label % 2, "per_image": number % 2}[domain_rule]
                noisy = pattern + random.normal(0, noise, pattern.shape) + 30 * domain
                image = noisy.clip(0, 255).astype(np.uint8)
                images.append(image)
                digest = hashlib.sha256(image.tobytes()).hexdigest()
                rows.append((label, domain, role, f"{info.name}/{role}/{number}", digest))
    manifest = pd.DataFrame(rows, columns=["label", "domain", "role", "source", "sha256"])
    write_dataset(folder, Header("tiny", classes, domains, domain_rule), np.stack(images), manifest)


def note_origin(folder: Path) -> None:
    """Let `folder`, `data/<name>/<seed>`, be what the splits stage made."""
    step = {"stage": "splits", "cell": folder.parent.name, "seed": int(folder.name), "settings": {}, "inputs": {}}
    (folder / ORIGIN).write_text(json.dumps(step | {"code": "0" * 64, "output": sha256(folder / SEAL)}))
    add_to_seal(folder, ORIGIN)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset folder without domains: 8 seen, 6 val and 7 test classes, 24 images per class and role."""
    folder = tmp_path_factory.mktemp("tiny") / "tiny"
    write_tiny_dataset(folder)
    return folder


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path) -> Dataset:
    """The dataset of `tiny_folder`, opened."""
    return open_dataset(tiny_folder)


@pytest.fixture(scope="session", params=["per_class", "per_image"])
def tiny_domains(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Two domains: either a class belongs to one, or has images in both (at least 10 classes per split)."""
    folder = tmp_path_factory.mktemp("domains") / request.param
    write_tiny_dataset(folder, seen=12, val=12, test=12, per_class=40, domain_rule=request.param)
    return open_dataset(folder)
