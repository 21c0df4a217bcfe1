"""Measures on validation tasks: HM while a method trains, and what its settings are chosen by."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from repro.data.dataset import Dataset
from repro.data.episodes import Tasks, draw_exemplars
from repro.errors import BadInput
from repro.evaluation.bound import BoundTasks, TaskPool
from repro.evaluation.calibration import best_bias
from repro.evaluation.cell import selecting_hm
from repro.evaluation.embed import Embedded, embed
from repro.evaluation.protocol import few_shot, generalised, outcomes
from repro.methods.base import Method, Scorer

HM, FEW_SHOT = "val_hm", "val_u_u"  # what weights are chosen by: the first for all uses, the other for few-shot use
CHOSEN_BY = ("hm", "cal_hm", "ausuc")


@dataclass(frozen=True)
class Validation:
    """The first `number` tasks; every image of the validation classes and of `seen_val` is embedded once a time.

    No image of a test task is ever looked at. Raises BadInput for tasks of another split.
    """

    data: Dataset
    tasks: Tasks
    number: int
    remembers: int
    memory_mb: int
    device: torch.device
    seed: int

    def __post_init__(self) -> None:
        if self.tasks.spec.split != "val":
            raise BadInput(f"got {self.tasks.spec.split} tasks, expected val: nothing is chosen on other tasks")

    @cached_property
    def exemplars_SM(self) -> Tensor:
        """The training images that the method remembers."""
        return draw_exemplars(self.data, self.remembers, self.seed)

    @cached_property
    def rows_N(self) -> Tensor:
        """The images that a validation needs."""
        roles = self.data.roles
        return torch.cat([roles["val"], roles["seen_val"], self.exemplars_SM.flatten()]).unique()

    def __call__(self, method: Method) -> dict[str, float]:
        """Means in percent: HM, which decides, and the accuracy of few-shot use."""
        scorer, bound = self._scored(method, self.number)
        return {HM: selecting_hm(method, scorer, bound), FEW_SHOT: float(few_shot(scorer, bound).values["u_u"].mean())}

    @torch.no_grad()
    def measures(self, method: Method) -> dict[str, float]:
        """Mean HM, calibrated HM and AUSUC in percent over all stored tasks; the same tasks give the bias."""
        scorer, bound = self._scored(method)
        found = generalised(scorer, bound, best_bias(outcomes(scorer, bound)), detailed=False)
        return {name: float(found.values[name].mean()) for name in CHOSEN_BY}

    def _scored(self, method: Method, number: int | None = None) -> tuple[Scorer, BoundTasks]:
        """The method bound to the images that a validation needs; those to be remembered are handed to it."""
        embedded = Embedded(self.rows_N, embed(method.backbone, self.data, self.rows_N, self.device), model="")
        if method.remembers:
            method.remember(embedded.of(self.exemplars_SM))
        task_pool = TaskPool("val", embedded, self.data, self.device, self.memory_mb)
        return method.to(self.device).eval().scorer(task_pool.pool), BoundTasks(self.tasks, task_pool, number)
