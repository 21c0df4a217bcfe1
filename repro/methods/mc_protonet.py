"""MC + ProtoNet (paper, Appendix A (3)): one embedding trained for both baselines' objectives at once.

The many-shot cross-entropy over all seen classes and the ProtoNet episodes share the backbone; inference is that of
MC + kNN, linear logits beside −d² as they are.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from repro.cards import Look, MethodCard
from repro.methods.base import BatchSpec, EmbeddedBatch, FixedSeen
from repro.methods.shared.distances import prototypes, prototypical_loss, seen_weight, squared_distances
from repro.options import Positive


class MulticlassProtoNet(FixedSeen):
    """Loss = many-shot cross-entropy on `free` seen images + `weight` · ProtoNet loss on `tasks` episodes.

    `temperature` divides the distances in the loss only.
    """

    card = MethodCard(
        "MC + ProtoNet",
        citation="Ye, Hu & Zhan: Learning Adaptive Classifiers Synthesis for Generalized Few-Shot Learning, IJCV 2021",
        url="https://arxiv.org/abs/1906.02944",
        look=Look("#56b4e9", "^", ":"),
    )
    selected_calibrated = True  # without a bias hardly a query is called unseen, HM is 0 whatever the weights
    default_training = {"steps": 500, "lr": 0.01, "batch_norm": "train"}

    def __init__(
        self,
        backbone: nn.Module,
        dim: int,
        seen_classes: int,
        *,
        weight: float = 1.0,
        temperature: Positive = 1.0,
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
        """The many-shot classifier's logits."""
        return queries_ND @ self.seen_weight_SD.T

    def joint_unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        """Negative squared distances to the support's class means."""
        return -squared_distances(queries_TQD, prototypes(support_TWKD))

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
