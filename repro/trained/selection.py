"""Choosing a method's options on validation tasks, where it leaves some to be chosen."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from repro.data.dataset import Dataset
from repro.data.episodes import Tasks
from repro.errors import Diverged
from repro.evaluation.cell import mean_hm
from repro.evaluation.embed import Embedded
from repro.methods.base import Method
from repro.methods.registry import method_class
from repro.trained.building import load_method, remember
from repro.trained.folders import FEW_SHOT, read_card, read_embedded

logger = logging.getLogger(__name__)
LEFT_OUT = -1.0  # below any harmonic mean


@dataclass(frozen=True)
class Candidates:
    """A method with each of the option sets among which validation chooses; most methods have one."""

    folder: Path
    name: str
    options: dict[str, Any]
    embedded: Embedded
    data: Dataset
    seed: int

    def build(self, tuned: dict[str, Any]) -> Method:
        """The method with these options besides its own, ready to be measured."""
        method = load_method(self.folder, self.name, {**self.options, **tuned}, self.seed)
        remember(method, self.embedded, self.data, self.seed)
        return method

    def few_shot(self) -> tuple[Method, Embedded] | None:
        """The same method with the weights that few-shot use chose in training, where they are others."""
        folder = self.folder / FEW_SHOT
        if not folder.is_dir() or read_card(folder).method != self.name:
            return None
        embedded = read_embedded(folder)
        method = load_method(folder, self.name, self.options, self.seed)
        remember(method, embedded, self.data, self.seed)
        return method, embedded

    def best(self, tasks: Tasks, number: int, memory_mb: int, device: torch.device) -> tuple[dict[str, Any], Method]:
        """The option set with the largest HM on the first validation tasks (the first of equals), and its method."""
        chosen, method, best = {}, None, -torch.inf
        grid = method_class(self.name).tuning_grid
        for tuned in grid:
            other = self.build(tuned)
            value = self._validated(other, tasks, number, memory_mb, device) if len(grid) > 1 else 0.0
            if value > best:
                chosen, method, best = tuned, other, value
        assert method is not None
        return {**self.options, **chosen}, method

    def _validated(self, method: Method, tasks: Tasks, number: int, memory_mb: int, device: torch.device) -> float:
        """Mean HM on validation tasks; below any other where fine-tuning with these options diverges."""
        try:
            return mean_hm(method, self.embedded, self.data, tasks, limit=number, memory_mb=memory_mb, device=device)
        except Diverged as error:
            logger.info("an option set is left out: %s", error)
            return LEFT_OUT
