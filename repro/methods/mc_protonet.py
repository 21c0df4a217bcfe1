"""MC + ProtoNet (paper, Appendix A (3)): one embedding trained for both baselines' objectives at once.

The many-shot cross-entropy over all seen classes and the ProtoNet episodes share the backbone; inference is that of
MC + kNN, the linear classifier's confidence beside the prototypes' confidence.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from repro.methods.base import BatchSpec, EmbeddedBatch, FixedSeen
from repro.methods.shared.confidences import many_shot_confidence, nearest_mean_confidence
from repro.methods.shared.distances import prototypical_loss, seen_weight


class MulticlassProtoNet(FixedSeen):
    """Loss = many-shot cross-entropy on `free` seen images + `weight` · ProtoNet loss on `tasks` episodes."""

    selected_calibrated = True

    def __init__(
        self,
        backbone: nn.Module,
        dim: int,
        seen_classes: int,
        *,
        weight: float = 1.0,
        temperature: float = 1.0,
        way: int = 5,
        queries: int = 15,
        tasks: int = 1,
        free: int = 128,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.seen_classes = seen_classes
        self.weight, self.temperature = weight, temperature
        self.way, self.queries, self.tasks, self.free = way, queries, tasks, free
        self.seen_weight_SD = seen_weight(seen_classes, dim, trained=True)

    def fixed_seen_logits(self, queries_ND: Tensor) -> Tensor:
        """The many-shot classifier's confidence."""
        return many_shot_confidence(self.seen_weight_SD, queries_ND)

    def joint_unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        """The prototypes' confidence."""
        return nearest_mean_confidence(support_TWKD, queries_TQD, self.temperature)

    def batch_spec(self, shot: int) -> BatchSpec:
        """Episodes for the prototypes, free images for the classifier."""
        return BatchSpec(classes=self.way, shot=shot, queries=self.queries, free=self.free, tasks=self.tasks)

    def loss(self, batch: EmbeddedBatch, generator: torch.Generator) -> Tensor:
        """Both objectives, traded off by `weight`."""
        many_shot = cross_entropy(batch.free_BD @ self.seen_weight_SD.T, batch.free_labels_B)
        return many_shot + self.weight * prototypical_loss(batch.support_TCKD, batch.query_TCQD, self.temperature)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """The embedding and the many-shot classifier."""
        return [
            {"name": "backbone", "params": list(self.backbone.parameters()), "lr_scale": 1.0},
            {"name": "seen_classifier", "params": [self.seen_weight_SD], "lr_scale": 1.0},
        ]
