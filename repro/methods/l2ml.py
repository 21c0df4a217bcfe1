"""L2ML (paper, Appendix A (4); Wang, Ramanan & Hebert 2017): regress few-shot classifiers to many-shot ones.

On a fixed embedding, a residual network f maps a class's few-shot classifier to its many-shot classifier; a few-shot
classifier is a linear one, fitted to the support. f is trained on |S|-way few-shot tasks of the seen classes by the
square loss to the pre-trained classifiers plus the classification loss of the mapped ones. Joint scores are linear:
pre-trained classifiers and f(few-shot classifiers). What a task of few ways gives f differs from the |S|-way fits that
it has learnt from; the paper's HM is 3.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from repro.cards import Look, MethodCard
from repro.methods.base import BatchSpec, EmbeddedBatch, FixedSeen
from repro.methods.shared.distances import frozen, seen_weight
from repro.methods.shared.fake_tail import fake_tail_loss, joint_queries
from repro.methods.shared.softmax_regression import fit_classifiers


class ResidualBlock(nn.Module):
    """w + FC(act(BN(FC(act(BN(w)))))): pre-activation, leaky ReLU, acting on weight vectors (N×D)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm1d(dim), nn.BatchNorm1d(dim)
        self.linear1, self.linear2 = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, weights_ND: Tensor) -> Tensor:
        """Give weights of the same shape."""
        hidden_ND = self.linear1(leaky_relu(self.norm1(weights_ND)))
        return weights_ND + self.linear2(leaky_relu(self.norm2(hidden_ND)))


class L2ML(FixedSeen):
    """Frozen embedding and seen classifier; the residual map of `blocks` blocks is all that learns."""

    card = MethodCard(
        "L2ML",
        citation="Wang, Ramanan and Hebert: Learning to Model the Tail, NIPS 2017",
        url="https://papers.neurips.cc/paper/2017/hash/147ebe637038ca50a1265abac8dea181-Abstract.html",
        look=Look("#029e73", "P", "-."),
    )
    default_training = {"steps": 500, "lr": 0.003}

    def __init__(
        self,
        backbone: nn.Module,
        dim: int,
        seen_classes: int,
        *,
        blocks: int = 2,
        penalty: float = 1.0,
        regression: float = 1.0,
        free: int = 128,
    ) -> None:
        """`penalty` is that of the few-shot fit, beside the summed cross-entropy: penalty/2 · ‖w‖²."""
        super().__init__()
        self.backbone = frozen(backbone)
        self.seen_classes = seen_classes
        self.penalty, self.regression, self.free = penalty, regression, free
        self.seen_weight_SD = seen_weight(seen_classes, dim, trained=False)
        self.map = nn.Sequential(*(ResidualBlock(dim) for _ in range(blocks)))

    def few_shot(self, support_TWKD: Tensor) -> Tensor:
        """Fit logistic regression to the support (T×W×D); which linear classifier it is, the paper leaves open."""
        images = support_TWKD.shape[1] * support_TWKD.shape[2]
        nothing_TN = support_TWKD.new_full((len(support_TWKD), images), -torch.inf)
        strength_D = support_TWKD.new_full((support_TWKD.shape[3],), self.penalty / 2 / images)
        return fit_classifiers(support_TWKD, nothing_TN, torch.zeros_like(support_TWKD[:, :, 0]), strength_D)

    def many_shot(self, support_TWKD: Tensor) -> Tensor:
        """Predict the many-shot classifiers (T×W×D)."""
        few_shot_TWD = self.few_shot(support_TWKD)
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
