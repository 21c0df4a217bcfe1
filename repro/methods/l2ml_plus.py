"""L2ML+ (ours; the paper has no such row): L2ML made stronger, as a rival that claims are also judged against.

As in L2ML (`l2ml.py`), a residual network maps a class's few-shot classifier to its many-shot classifier, on a fixed
embedding. Here the few-shot classifier is no fit but the prototype, brought to the length of the seen classifiers, and
the map starts as the identity.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from repro.cards import Look, MethodCard
from repro.methods.base import BatchSpec, EmbeddedBatch, FixedSeen
from repro.methods.shared.distances import frozen, prototypes, scaled_like, seen_weight
from repro.methods.shared.fake_tail import fake_tail_loss, joint_queries


class ResidualBlock(nn.Module):
    """w + FC(act(BN(FC(act(BN(w)))))): pre-activation, leaky ReLU, acting on weight vectors (N×D)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm1d(dim), nn.BatchNorm1d(dim)
        self.linear1, self.linear2 = nn.Linear(dim, dim), nn.Linear(dim, dim)
        # The map starts as the identity: a few-shot classifier is a fair first guess of the many-shot one.
        nn.init.zeros_(self.linear2.weight)
        nn.init.zeros_(self.linear2.bias)

    def forward(self, weights_ND: Tensor) -> Tensor:
        """Give weights of the same shape."""
        hidden_ND = self.linear1(leaky_relu(self.norm1(weights_ND)))
        return weights_ND + self.linear2(leaky_relu(self.norm2(hidden_ND)))


class L2MLPlus(FixedSeen):
    """Frozen embedding and seen classifier; the residual map of `blocks` blocks is all that learns."""

    card = MethodCard(
        "L2ML+",
        citation="Ours: L2ML from prototypes at the length of the seen classifiers, trained jointly",
        look=Look("#5d3a9b", "X", "--"),
    )
    default_training = {"steps": 500, "lr": 0.003}

    def __init__(
        self,
        backbone: nn.Module,
        dim: int,
        seen_classes: int,
        *,
        blocks: int = 2,
        regression: float = 1.0,
        free: int = 128,
    ) -> None:
        super().__init__()
        self.backbone = frozen(backbone)
        self.seen_classes = seen_classes
        self.regression, self.free = regression, free
        self.seen_weight_SD = seen_weight(seen_classes, dim, trained=False)
        self.map = nn.Sequential(*(ResidualBlock(dim) for _ in range(blocks)))

    def many_shot(self, support_TWKD: Tensor) -> Tensor:
        """Predict the many-shot classifiers (T×W×D).

        The few-shot classifier of a class is its prototype, brought to the length of the seen classifiers: linear,
        and independent of how many other classes the task has, which differs between training and test.
        """
        few_shot_TWD = scaled_like(self.seen_weight_SD, prototypes(support_TWKD))
        return self.map(few_shot_TWD.flatten(0, 1)).view_as(few_shot_TWD)

    def fixed_seen_logits(self, queries_ND: Tensor) -> Tensor:
        """The pre-trained classifiers' logits."""
        return queries_ND @ self.seen_weight_SD.T

    def joint_unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        """The mapped classifiers' logits."""
        return queries_TQD @ self.many_shot(support_TWKD).transpose(1, 2)

    def batch_spec(self, shot: int) -> BatchSpec:
        """One |S|-way few-shot task, and instances of all seen classes to classify."""
        return BatchSpec(classes=self.seen_classes, shot=shot, queries=0, free=self.free)

    def loss(self, batch: EmbeddedBatch, generator: torch.Generator) -> Tensor:
        """`regression` · mean ‖f(ŵ) − w‖² over the task's classes + cross-entropy with the mapped classifiers."""
        mapped_TCD = self.many_shot(batch.support_TCKD)
        square = (mapped_TCD - self.seen_weight_SD[batch.labels_TC]).square().sum(dim=-1).mean()
        queries_TQD, targets_TQ = joint_queries(batch)
        # Classes outside the task keep their own classifier: a multi-domain step holds one domain's classes only.
        seen_TQS, tail_TQC = queries_TQD @ self.seen_weight_SD.T, queries_TQD @ mapped_TCD.transpose(1, 2)
        return self.regression * square + fake_tail_loss(seen_TQS, tail_TQC, batch.labels_TC, targets_TQ)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """The map alone."""
        return [{"name": "map", "params": list(self.map.parameters()), "lr_scale": 1.0}]
