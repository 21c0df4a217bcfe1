"""What a training step draws, as rows of the dataset: shuffled batches of an epoch, and few-shot batches.

Every draw is a function of (seed, step) alone, so the position in the data order is the step number.

Dimensions: T tasks, C classes, K shots, Q queries, B free images, N all images of the step, G domains, S seen classes.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import torch
from torch import Tensor

from repro.data.dataset import Dataset
from repro.data.episodes import draw_distinct
from repro.data.loading import Draw
from repro.data.seeding import generator
from repro.errors import BadInput

FEWER = "lower the method's option `queries` or `free`, or `shot`"  # what sets the images of a step


class Draws(Protocol):
    """Whatever gives a step (from 1) its images."""

    def draw(self, step: int) -> Draw: ...


@dataclass(frozen=True)
class ShuffledRows:
    """A batch of an epoch: rows and their labels."""

    rows_N: Tensor
    labels_N: Tensor


class ShuffledBatches:
    """Every epoch passes over the training images in a new order, in whole batches; the remainder waits its turn."""

    def __init__(self, dataset: Dataset, batch: int, seed: int) -> None:
        rows = dataset.roles["train"]
        if not 1 <= batch <= len(rows):
            raise BadInput(f"batch size {batch}: expected 1 to {len(rows)}, the number of training images; change it")
        self.per_epoch = len(rows) // batch

        @lru_cache(maxsize=1)
        def order(epoch: int) -> Tensor:
            return rows[torch.randperm(len(rows), generator=generator(seed, "epoch order", epoch))]

        self._order, self._batch, self._labels_N = order, batch, dataset.labels_N

    def draw(self, step: int) -> ShuffledRows:
        """The batch of this step (from 1)."""
        epoch, place = divmod(step - 1, self.per_epoch)
        rows_N = self._order(epoch)[place * self._batch : (place + 1) * self._batch]
        return ShuffledRows(rows_N, self._labels_N[rows_N])


@dataclass(frozen=True)
class EpisodeRows:
    """A few-shot batch: support and queries of the classes, images drawn freely, and the labels of both."""

    support_TCK: Tensor
    query_TCQ: Tensor
    labels_TC: Tensor
    free_B: Tensor
    free_labels_B: Tensor

    @property
    def rows_N(self) -> Tensor:
        """All rows of the step: support, then queries, then free images."""
        return torch.cat([self.support_TCK.flatten(), self.query_TCQ.flatten(), self.free_B])


class EpisodeBatches:
    """Few-shot batches of training images: `tasks` × `classes` × (`shot` + `queries`) distinct images, and `free` ones.

    A dataset with domains has one random domain per step. Where a class belongs to one domain, the step's classes all
    come from it and free images from all of them; where a class has images in every domain, all images come from it.
    A domain with fewer classes gives fewer.
    """

    def __init__(
        self, dataset: Dataset, *, classes: int, shot: int, queries: int, free: int, tasks: int = 1, seed: int
    ) -> None:
        self.classes, self.shot, self.queries, self.free, self.tasks = classes, shot, queries, free, tasks
        self._seed = seed
        self._rows = dataset.roles["train"]
        self._labels = dataset.labels_N
        domains = len(dataset.header.domains) if dataset.header.domain_rule != "none" else 1
        domain_of_row = dataset.domains_N[self._rows] if domains > 1 else torch.zeros_like(self._rows)
        # Rows are sorted by label, then domain: a class's images in a domain are one range.
        cell = self._labels[self._rows] * domains + domain_of_row
        count = torch.bincount(cell, minlength=dataset.seen_classes * domains)
        self._count_SG = count.view(dataset.seen_classes, domains)
        self._start_SG = (count.cumsum(0) - count).view(dataset.seen_classes, domains)
        self._check(dataset)
        shared = dataset.header.domain_rule == "per_image"
        self._free_pools = [self._rows[domain_of_row == g] if shared else self._rows for g in range(domains)]
        if free > min(map(len, self._free_pools)):
            have = min(map(len, self._free_pools))
            raise BadInput(f"a step draws {free} free images, but only {have} are there to draw from; {FEWER}")

    def _check(self, dataset: Dataset) -> None:
        seen, need = dataset.seen_classes, self.shot + self.queries
        if min(self.classes, self.shot, self.tasks) < 1 or min(self.queries, self.free) < 0:
            raise BadInput(
                f"a step of {self.tasks} tasks, {self.classes} classes, {self.shot} shots, {self.queries} queries and "
                f"{self.free} free images: expected at least 1, 1, 1, 0 and 0; correct the numbers"
            )
        if self.classes > seen:
            raise BadInput(
                f"a step draws {self.classes} classes, but {dataset.header.name} has {seen} seen classes; "
                "lower the method's option `classes` or `way`"
            )
        most, label = self._count_SG.max(dim=1).values.min(dim=0)
        if most < need:
            raise BadInput(
                f"class {dataset.header.classes[int(label)].name} has {int(most)} training images (in one domain), "
                f"a step needs {need} ({self.shot} shots + {self.queries} queries); {FEWER}"
            )
        most, domain = self._count_SG.max(dim=0).values.min(dim=0)
        if most < need:
            raise BadInput(
                f"domain {dataset.header.domains[int(domain)]} has at most {int(most)} training images of a class, "
                f"a step needs {need} ({self.shot} shots + {self.queries} queries); {FEWER}"
            )

    def draw(self, step: int) -> EpisodeRows:
        """The batch of this step (from 1)."""
        random = generator(self._seed, "episode", step)
        domain = int(torch.randint(self._count_SG.shape[1], (1,), generator=random))
        eligible = (self._count_SG[:, domain] >= self.shot + self.queries).nonzero().flatten()
        places_TC = draw_distinct(torch.full((self.tasks,), len(eligible)), min(self.classes, len(eligible)), random)
        labels_TC = eligible[places_TC]
        counts_TC, starts_TC = self._count_SG[labels_TC, domain], self._start_SG[labels_TC, domain]
        chosen = draw_distinct(counts_TC.flatten(), self.shot + self.queries, random).view(*labels_TC.shape, -1)
        images_TCN = self._rows[starts_TC.unsqueeze(-1) + chosen]
        pool = self._free_pools[domain]
        free_B = pool[draw_distinct(torch.tensor([len(pool)]), self.free, random)[0]]
        return EpisodeRows(
            support_TCK=images_TCN[..., : self.shot],
            query_TCQ=images_TCN[..., self.shot :],
            labels_TC=labels_TC,
            free_B=free_B,
            free_labels_B=self._labels[free_B],
        )
