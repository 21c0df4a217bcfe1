"""Task lists, kept as what they were drawn from: the layout of a dataset, the list's numbers and the seed.

The images of a dataset are sorted by role, class and domain, so counting them tells which row is what; with the seed
the same tasks are drawn again, and the digest of a list says whether they are.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from repro.data.dataset import ROLES, SPLIT_OF_ROLE, ClassInfo, Dataset, DomainRule, Header, open_dataset
from repro.data.episodes import TaskSpec, draw_tasks
from repro.data.pixels import PixelsInMemory
from repro.errors import BadInput
from repro.results.contents import TaskContents

# A run of classes that have equally many images in a role and domain: role, domain, first label, classes, images each.
Run = tuple[str, int, int, int, int]


@dataclass(frozen=True)
class Layout:
    """Which rows of a dataset are what, and how its domains enter a task."""

    domains: int
    domain_rule: DomainRule
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class DrawnList:
    """One stored list: whose tasks, drawn with which numbers from which seed."""

    dataset: str
    seed: int
    spec: TaskSpec


def layout_of(folder: Path) -> Layout:
    """Count the images of a dataset folder. Raises BadInput where it holds no dataset."""
    dataset = open_dataset(folder)
    runs: list[Run] = []
    for role in ROLES:
        rows = dataset.roles[role]
        pairs = zip(dataset.labels_N[rows].tolist(), dataset.domains_N[rows].tolist(), strict=True)
        for (domain, label), images in sorted(Counter((domain, label) for label, domain in pairs).items()):
            last = runs[-1] if runs else ("", 0, 0, 0, 0)
            if (last[0], last[1], last[2] + last[3], last[4]) == (role, domain, label, images):
                runs[-1] = (role, domain, last[2], last[3] + 1, images)
            else:
                runs.append((role, domain, label, 1, images))
    return Layout(len(dataset.header.domains), dataset.header.domain_rule, tuple(runs))


def dataset_without_images(layout: Layout) -> Dataset:
    """A dataset that tasks can be drawn from; it has no pictures."""
    rows = sorted(
        (ROLES.index(role), label, domain, images)
        for role, domain, first, classes, images in layout.runs
        for label in range(first, first + classes)
    )
    images_R = [images for *_, images in rows]
    role_N, label_N, domain_N = (np.repeat([row[place] for row in rows], images_R) for place in range(3))
    split = {label: SPLIT_OF_ROLE[ROLES[role]] for role, label, *_ in rows}
    classes = tuple(ClassInfo(str(label), split[label]) for label in sorted(split))
    return Dataset(
        Header("", classes, tuple(map(str, range(layout.domains))), layout.domain_rule),
        PixelsInMemory(np.empty((0, 1, 1, 1), np.uint8)),
        torch.from_numpy(label_N),
        torch.from_numpy(domain_N),
        {role: torch.from_numpy(np.flatnonzero(role_N == place)) for place, role in enumerate(ROLES)},
    )


class RedrawnContents:
    """The lists of an edition by their digest, drawn when first asked for."""

    def __init__(self, layouts: Mapping[str, Layout], lists: Mapping[str, DrawnList]) -> None:
        """`layouts` are by dataset and seed, as in "mini/0"."""
        self.layouts, self.lists = layouts, lists
        self._drawn: dict[str, TaskContents] = {}

    def __call__(self, digest: str) -> TaskContents | None:
        """What the tasks of a list are made of; None where the edition does not know the list.

        Raises BadInput where other tasks come out than those that were measured.
        """
        if digest not in self._drawn and digest in self.lists:
            listed = self.lists[digest]
            dataset = dataset_without_images(self.layouts[f"{listed.dataset}/{listed.seed}"])
            tasks = draw_tasks(dataset, listed.spec, listed.seed)
            if tasks.digest != digest:
                message = f"{listed.dataset}, seed {listed.seed}, {asdict(listed.spec)}: the tasks drawn are"
                raise BadInput(f"{message} {tasks.digest}, the edition has {digest}; check out the commit that kept it")
            self._drawn[digest] = TaskContents(
                tasks.classes_TW.numpy(), tasks.support_TWK.numpy(), tasks.query_TWQ.numpy(), tasks.seen_TQ.numpy()
            )
        return self._drawn.get(digest)
