"""Counted sizes: images of a dataset by role, weights and features of a backbone, the bytes of every output."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from repro.data.dataset import SPLIT_OF_ROLE
from repro.models import create_backbone
from repro.preparation.preparing import RENDERERS
from repro.results.records import KEYS, MEASURES
from repro.trained.folders import EXEMPLARS
from stages.settings.params import Episodes, Named

FLOAT = 4
ROW_BYTES = 256  # of an image's line in the manifest


@dataclass(frozen=True)
class DatasetSize:
    """Images by role, seen classes, and the shape of an image."""

    images: Mapping[str, int]
    seen: int
    size: int
    channels: int

    @property
    def total(self) -> int:
        return sum(self.images.values())

    @property
    def packed(self) -> int:
        """Bytes of the dataset's folder."""
        return self.total * (self.size**2 * self.channels + ROW_BYTES)

    @property
    def stored_rows(self) -> int:
        """Images whose embeddings every model keeps."""
        return self.total - self.images["train"] + self.exemplars(EXEMPLARS)

    def exemplars(self, number: int) -> int:
        """Training images that are remembered: the same number of each seen class, or all that it has."""
        return min(number * self.seen, self.images["train"])


def drawn_size(options: Mapping[str, Any], size: int) -> DatasetSize:
    """Of a source that draws its images: its options say how many."""
    classes = options["classes"]
    images = {role: number * classes[SPLIT_OF_ROLE[role]] for role, number in options["images"].items()}
    return DatasetSize(images, classes["seen"], size, channels=1)


def is_drawn(source: str) -> bool:
    """Whether a source draws its images instead of reading a user's."""
    return source in RENDERERS


@cache
def _backbone(name: str, channels: int, options: tuple[tuple[str, Any], ...]) -> tuple[int, int]:
    with torch.device("meta"):
        network, dim = create_backbone(name, channels, **dict(options))
    return sum(one.numel() for one in network.parameters()), dim


def backbone_size(backbone: Named, channels: int) -> tuple[int, int]:
    """Weights and features of a backbone."""
    return _backbone(backbone.name, channels, tuple((key, _hashable(value)) for key, value in backbone.options.items()))


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def model_bytes(weights: int, dim: int, size: DatasetSize) -> int:
    """Weights and embeddings."""
    return FLOAT * (weights + dim * size.stored_rows)


def task_bytes(episodes: Episodes) -> int:
    """All stored task lists: an image or class is an int32."""
    each_shot = 0
    for shot in episodes.shots:
        for entry in episodes.test:
            own = entry.way * (1 + shot + 2 * episodes.query)
            each_shot += (entry.tasks + episodes.calibration) * own
    return FLOAT * each_shot


def record_bytes(tasks: int) -> int:
    """A row per task."""
    return FLOAT * (len(MEASURES) + len(KEYS)) * tasks


def drawn_images(tasks: int, of: int) -> float:
    """How many of `of` images are drawn at least once, on average."""
    return of * (1 - (1 - 1 / of) ** tasks)


def readable(number: float) -> str:
    """Bytes for people."""
    return f"{number / 1e9:.2f} GB" if number >= 1e8 else f"{number / 1e6:.1f} MB"
