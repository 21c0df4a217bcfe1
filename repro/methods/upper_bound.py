"""Upper bound (paper, Appendix B): a trained ProtoNet whose unseen prototypes see every image but the queries.

The task's support only names the classes; each prototype averages all images of its class in the pool that are not
among the task's queries. Its generalised few-shot value in the paper is the calibrated harmonic mean.
"""

from typing import Any

import torch
from torch import Tensor, nn

from repro.cards import MethodCard
from repro.methods.base import Method, Pool, Scores, TableScorer, TaskBatch, take
from repro.methods.protonet import ProtoNet
from repro.methods.shared.distances import frozen, squared_distances


class UpperBound(Method):
    """Uses the weights of the trained ProtoNet; without a pool it can only use the support it is given."""

    card = MethodCard(
        "UB",
        citation="Ye, Hu & Zhan: Learning Adaptive Classifiers Synthesis for Generalized Few-Shot Learning, IJCV 2021",
        url="https://arxiv.org/abs/1906.02944",
    )
    base_method = "protonet"
    remembers = ProtoNet.remembers

    def __init__(self, backbone: nn.Module, dim: int, seen_classes: int, **protonet_options: Any) -> None:
        super().__init__()
        self.seen_classes = seen_classes
        self.base = ProtoNet(frozen(backbone), dim, seen_classes, **protonet_options)

    @property
    def backbone(self) -> nn.Module:  # type: ignore[override]
        """ProtoNet's, held once."""
        return self.base.backbone

    def remember(self, exemplars_SMD: Tensor) -> None:
        """Pass on to ProtoNet."""
        self.base.remember(exemplars_SMD)

    def joint_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> tuple[Tensor, Tensor]:
        """ProtoNet's own scores with however many shots are given."""
        return self.base.joint_logits(support_TWKD, queries_TQD)

    def unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        """ProtoNet's own scores with however many shots are given."""
        return self.base.unseen_logits(support_TWKD, queries_TQD)

    def scorer(self, pool: Pool) -> "ManyShotScorer":
        """Bind to a pool: its images become the support."""
        return ManyShotScorer(self.base, pool)


class ManyShotScorer(TableScorer):
    """Seen scores are looked up; a class's mean is its sum over the pool less the task's queries of that class."""

    def __init__(self, protonet: ProtoNet, pool: Pool) -> None:
        super().__init__(protonet, pool)
        self.temperature = protonet.temperature
        classes = int(pool.labels_N.max()) + 1
        self.sums_CD = pool.embeddings_ND.new_zeros(classes, pool.embeddings_ND.shape[1])
        self.sums_CD.index_add_(0, pool.labels_N, pool.embeddings_ND)
        self.counts_C = torch.bincount(pool.labels_N, minlength=classes)

    def __call__(self, tasks: TaskBatch) -> Scores:
        return self.scores(tasks, self.unseen_logits(tasks))

    def unseen_logits(self, tasks: TaskBatch) -> Tensor:
        """Negative distances to the many-shot prototypes (T×Q×W)."""
        labels_TW = self.pool.labels_N[tasks.support_TWK[..., 0]]
        queries_TQD = take(self.pool.embeddings_ND, tasks.queries_TQ)
        of_queries_TQ = take(self.pool.labels_N, tasks.queries_TQ)
        own_TWQ = (labels_TW.unsqueeze(2) == of_queries_TQ.unsqueeze(1)).to(queries_TQD.dtype)
        counts_TW1 = self.counts_C[labels_TW].unsqueeze(2) - own_TWQ.sum(dim=2, keepdim=True)
        means_TWD = (self.sums_CD[labels_TW] - own_TWQ @ queries_TQD) / counts_TW1
        return -squared_distances(queries_TQD, means_TWD) / self.temperature
