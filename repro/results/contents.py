"""What every task of a list is made of, its classes and images, and where stored lists are found."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from repro.errors import BadInput
from repro.results.layers import Layer

# T tasks, W ways, K shots, Q queries, S seen queries.


@dataclass(frozen=True, eq=False)
class TaskContents:
    """Classes by label and images by row, as integers; two lists of one dataset use the same numbers."""

    classes_TW: np.ndarray
    support_TWK: np.ndarray
    query_TWQ: np.ndarray
    seen_TS: np.ndarray
    _beginnings: dict[int, "TaskContents"] = field(default_factory=dict, repr=False)

    @property
    def tasks(self) -> int:
        """How many tasks the list has."""
        return len(self.classes_TW)

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """What is resampled: unseen classes with all that is in them, or their images; and images of seen queries."""
        images_TWM = np.concatenate([self.support_TWK, self.query_TWQ], axis=2)
        unseen = self._classes if self.resamples_classes else Layer(images_TWM)
        return (unseen, Layer(self.seen_TS[:, None])) if self.seen_TS.size else (unseen,)

    @property
    def resamples_classes(self) -> bool:
        """Whether unseen classes are resampled: not where every task holds all of them."""
        return self._classes.varies

    @cached_property
    def _classes(self) -> Layer:
        return Layer(self.classes_TW[:, None])

    def first(self, tasks: int) -> "TaskContents":
        """The beginning of the list."""
        if tasks == self.tasks:
            return self
        if tasks not in self._beginnings:
            self._beginnings[tasks] = TaskContents(
                self.classes_TW[:tasks], self.support_TWK[:tasks], self.query_TWQ[:tasks], self.seen_TS[:tasks]
            )
        return self._beginnings[tasks]


class StoredContents:
    """The task lists stored below some folders, found by their digest and read when first asked for."""

    def __init__(self, *folders: Path) -> None:
        self.folders = folders
        self._read: dict[str, TaskContents] = {}

    def __call__(self, digest: str) -> TaskContents | None:
        """The list with this digest, or None where no such list is stored."""
        from safetensors import safe_open

        if digest not in self._read and digest in self._files:
            with safe_open(self._files[digest], "numpy") as stored:
                parts = [stored.get_tensor(name) for name in ("classes", "support", "query", "seen")]
            self._read[digest] = TaskContents(*parts)
        return self._read.get(digest)

    @cached_property
    def _files(self) -> dict[str, Path]:
        return {_digest(file): file for folder in self.folders for file in sorted(folder.rglob("*.safetensors"))}


def _digest(file: Path) -> str:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "numpy") as stored:
            return str(json.loads(stored.metadata()["tasks"])["digest"])
    except (OSError, SafetensorError, TypeError, KeyError, ValueError) as error:
        raise BadInput(f"{file}: not a stored task list ({error}); delete it and draw the tasks again") from error
