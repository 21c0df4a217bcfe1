"""HM on validation tasks, asked of a method while it trains."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from repro.data.dataset import Dataset
from repro.data.episodes import Tasks, draw_exemplars
from repro.evaluation.cell import mean_hm
from repro.evaluation.embed import Embedded, embed
from repro.methods.base import Method


@dataclass(frozen=True)
class Validation:
    """The first `number` tasks; every image of the validation classes and of `seen_val` is embedded once a time."""

    data: Dataset
    tasks: Tasks
    number: int
    remembers: int
    memory_mb: int
    device: torch.device
    seed: int

    @cached_property
    def exemplars_SM(self) -> Tensor:
        """The training images that the method remembers."""
        return draw_exemplars(self.data, self.remembers, self.seed)

    @cached_property
    def rows_N(self) -> Tensor:
        """The images that a validation needs."""
        roles = self.data.roles
        return torch.cat([roles["val"], roles["seen_val"], self.exemplars_SM.flatten()]).unique()

    def __call__(self, method: Method) -> float:
        """Mean HM in percent."""
        embedded = Embedded(self.rows_N, embed(method.backbone, self.data, self.rows_N, self.device), model="")
        if method.remembers:
            method.remember(embedded.of(self.exemplars_SM))
        return mean_hm(
            method, embedded, self.data, self.tasks, limit=self.number, memory_mb=self.memory_mb, device=self.device
        )
