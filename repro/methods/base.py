"""What every method answers, so that training and evaluation never ask for its name.

Dimensions: T tasks, W ways (unseen classes), K shots, Q queries, D features, S seen classes, N images of a pool,
M remembered training images per seen class, C classes of a training batch, B queries of a training batch.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from repro.cards import MethodCard
from repro.errors import BadInput

Pretraining = Literal["standard", "cosine"]  # the roles under which params.yaml names the many-shot classifiers


@dataclass(frozen=True)
class BatchSpec:
    """What a training step draws: `tasks` × `classes` × (`shot` support + `queries`), and `free` seen images."""

    classes: int
    shot: int
    queries: int
    free: int
    tasks: int = 1


@dataclass(frozen=True)
class EmbeddedBatch:
    """A training step's images after the one backbone forward. Labels are seen labels, 0 … S − 1."""

    support_TCKD: Tensor
    query_TCQD: Tensor
    labels_TC: Tensor
    free_BD: Tensor
    free_labels_B: Tensor


@dataclass(frozen=True)
class Pool:
    """The embedded images that evaluation tasks point into, with their labels (unseen labels start at S)."""

    embeddings_ND: Tensor
    labels_N: Tensor


@dataclass(frozen=True)
class TaskBatch:
    """Some tasks as rows of a pool: support of the W unseen classes, then the queries (any mix of seen and unseen)."""

    support_TWK: Tensor
    queries_TQ: Tensor


@dataclass(frozen=True)
class Scores:
    """Joint scores of a batch of tasks. The best seen class is enough for every measure but MAP and confidence."""

    best_seen_TQ: Tensor  # the largest seen logit
    seen_label_TQ: Tensor  # its label; the first one where logits tie
    unseen_TQW: Tensor
    seen_logits: Callable[[int], Tensor]  # all seen logits of the first queries (T×·×S), for MAP
    seen_totals: Callable[[], Tensor]  # the logarithm of their summed exponentials (T×Q), for confidence

    @cached_property
    def best_unseen(self) -> torch.return_types.max:
        """The largest unseen logit (`values`, T×Q) and its way (`indices`); the first one where logits tie."""
        return self.unseen_TQW.max(dim=-1)

    @classmethod
    def of(cls, seen_TQS: Tensor, unseen_TQW: Tensor) -> "Scores":
        """From all logits."""
        best_TQ, label_TQ = seen_TQS.max(dim=-1)
        return cls(best_TQ, label_TQ, unseen_TQW, lambda q: seen_TQS[:, :q], lambda: seen_TQS.logsumexp(dim=-1))


class Scorer(Protocol):
    """A method bound to a pool: whatever does not depend on the task has been computed once per image."""

    def __call__(self, tasks: TaskBatch) -> Scores: ...

    def unseen_logits(self, tasks: TaskBatch) -> Tensor:
        """Few-shot use: scores over the task's own classes only (T×Q×W)."""
        ...


def take(rows_ND: Tensor, index: Tensor) -> Tensor:
    """Rows, or entries of a vector, by index of any shape (…×D): much faster than `rows_ND[index]` on a CPU."""
    return rows_ND.index_select(0, index.flatten()).unflatten(0, index.shape)


class Method(nn.Module, ABC):
    """A generalised few-shot learner on top of a backbone: `backbone(images) → N×D` pooled features."""

    card: MethodCard = MethodCard()  # label, citation and looks; `own_card` reads it
    backbone: nn.Module
    seen_classes: int
    remembers: int = 0  # training images per seen class that inference needs (`remember` receives them)
    pretraining: Pretraining = "standard"  # which of the pre-trained backbones it starts from
    default_training: Mapping[str, Any] | None = None  # `MetaTraining` where params.yaml says no more; None: has none
    base_method: str | None = None  # registry name of the method whose trained weights `self.base` takes
    tuning_grid: tuple[dict[str, Any], ...] = ({},)  # option sets among which validation chooses
    few_shot_is_joint: bool = False  # few-shot use takes the unseen scores of the joint prediction, as they are
    selected_calibrated: bool = False  # by calibrated HM, where the scores leave the other at 0 for any weights
    seen_measure: str = "syn_s"  # what the accuracy of its few-shot classifiers on seen classes is called (F11)

    @classmethod
    def own_card(cls) -> MethodCard:
        """The card that this class itself gives: one that it inherits speaks for another method."""
        found: MethodCard = vars(cls).get("card", MethodCard())
        return found

    def load_pretrained(self, weight_SD: Tensor) -> None:
        """Receive pre-training's seen classifier (S×D), scaled so that its products are the pre-training logits.

        The products are with the features where `pretraining` is standard, with unit-length features where it is
        cosine. It goes into the parameter `seen_weight_SD`; a method without one has no use for it.
        """
        own_SD = self._parameters.get("seen_weight_SD")
        if own_SD is None:
            return
        if own_SD.shape != weight_SD.shape:
            raise BadInput(
                f"the pre-trained classifier has shape {tuple(weight_SD.shape)}, {type(self).__name__} expects "
                f"{tuple(own_SD.shape)} (seen classes, features): pre-train on this dataset with this backbone"
            )
        with torch.no_grad():
            own_SD.copy_(weight_SD)

    @abstractmethod
    def joint_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> tuple[Tensor, Tensor]:
        """Scores over seen (T×Q×S) and unseen (T×Q×W) classes, comparable with each other."""

    @abstractmethod
    def unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        """Few-shot use: scores over the task's own classes only (T×Q×W)."""

    def batch_spec(self, shot: int) -> BatchSpec | None:
        """What a training step needs; None where there is nothing to train after pre-training."""
        return None

    def loss(self, batch: EmbeddedBatch, generator: torch.Generator) -> Tensor:
        """The training objective of one step; `generator` draws whatever the method itself samples."""
        raise NotImplementedError(f"{type(self).__name__} has nothing to train")

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Optimiser groups: every trainable parameter in exactly one, each with `name`, `params` and `lr_scale`."""
        return []

    def remember(self, exemplars_SMD: Tensor) -> None:
        """Receive the embedded training images (S×M×D) that inference needs, drawn once per model."""

    def many_shot_logits(self, queries_ND: Tensor) -> Tensor | None:
        """Scores of the many-shot seen classifier on its own (N×S); None where a method has no such classifier."""
        return None

    def scorer(self, pool: Pool) -> Scorer:
        """Bind to a pool. Methods whose seen scores do not depend on the task override this with a table look-up."""
        return GatheredScorer(self, pool)


class FixedSeen(Method):
    """A method whose seen classifiers never change: their scores are a property of the image alone."""

    few_shot_is_joint = True

    @abstractmethod
    def fixed_seen_logits(self, queries_ND: Tensor) -> Tensor:
        """Scores over the seen classes (N×S)."""

    @abstractmethod
    def joint_unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        """Scores over the task's unseen classes (T×Q×W), comparable with the seen ones."""

    def joint_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> tuple[Tensor, Tensor]:
        """See `Method.joint_logits`."""
        tasks, queries, _ = queries_TQD.shape
        seen_NS = self.fixed_seen_logits(queries_TQD.flatten(0, 1))
        return seen_NS.view(tasks, queries, -1), self.joint_unseen_logits(support_TWKD, queries_TQD)

    def many_shot_logits(self, queries_ND: Tensor) -> Tensor:
        """See `Method.many_shot_logits`."""
        return self.fixed_seen_logits(queries_ND)

    def unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        """The unseen classifiers do not depend on the seen ones, so few-shot use needs nothing else."""
        return self.joint_unseen_logits(support_TWKD, queries_TQD)

    def scorer(self, pool: Pool) -> Scorer:
        """Seen scores of every image once; a task only adds its own few columns."""
        return TableScorer(self, pool)


class GatheredScorer:
    """The general scorer: gather embeddings, ask the method."""

    def __init__(self, method: Method, pool: Pool) -> None:
        self.method, self.pool = method, pool

    def _gathered(self, tasks: TaskBatch) -> tuple[Tensor, Tensor]:
        return take(self.pool.embeddings_ND, tasks.support_TWK), take(self.pool.embeddings_ND, tasks.queries_TQ)

    def __call__(self, tasks: TaskBatch) -> Scores:
        return Scores.of(*self.method.joint_logits(*self._gathered(tasks)))

    def unseen_logits(self, tasks: TaskBatch) -> Tensor:
        return self.method.unseen_logits(*self._gathered(tasks))


class TableScorer(GatheredScorer):
    """The scorer of a `FixedSeen` method: seen logits are looked up by image."""

    method: FixedSeen

    def __init__(self, method: FixedSeen, pool: Pool) -> None:
        super().__init__(method, pool)
        self.seen_NS = method.fixed_seen_logits(pool.embeddings_ND)
        self.best_N, self.label_N = self.seen_NS.max(dim=-1)
        self.total_N = self.seen_NS.logsumexp(dim=-1)

    def __call__(self, tasks: TaskBatch) -> Scores:
        return self.scores(tasks, self.method.joint_unseen_logits(*self._gathered(tasks)))

    def scores(self, tasks: TaskBatch, unseen_TQW: Tensor) -> Scores:
        """These unseen logits beside the seen scores of the same queries."""
        queries_TQ = tasks.queries_TQ
        return Scores(
            take(self.best_N, queries_TQ),
            take(self.label_N, queries_TQ),
            unseen_TQW,
            lambda q: take(self.seen_NS, queries_TQ[:, :q]),
            lambda: take(self.total_N, queries_TQ),
        )
