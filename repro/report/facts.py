"""What the report has to be told about the run: plain values, so that it depends on records and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class DomainSamples:
    """Some images of one domain (N×H×W×C, uint8), each of another class."""

    domain: str
    images_NHWC: np.ndarray


@dataclass(frozen=True)
class DatasetFacts:
    """Counts of one dataset. `images` gives the number of images of each role (train, val, test, seen_val, …)."""

    title: str
    seen: int
    val: int
    unseen: int
    images: Mapping[str, int]
    samples: tuple[DomainSamples, ...] = ()


@dataclass(frozen=True)
class Benchmark:
    """Which data a run used. `remark` says what a reader must not conclude; `backbones` names one per dataset."""

    name: str
    scale: str
    remark: str = ""
    backbones: Mapping[str, str] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The mark that every caption and every page carries."""
        return f"{self.name} benchmark, scale {self.scale}"


def fill(text: str, dataset: str, datasets: Mapping[str, DatasetFacts]) -> str:
    """Put a dataset's name and counts into the braces of a title or header; unknown counts read as "all"."""
    facts = datasets.get(dataset)
    if facts is None:
        return text.format(dataset=dataset, seen="all", unseen="all")
    return text.format(dataset=facts.title, seen=facts.seen, unseen=facts.unseen)
