"""ProtoNet + ProtoNet (paper, Appendix A (2); Snell et al. 2017): nearest class mean for seen and unseen alike.

The embedding is trained on few-shot episodes of the seen classes. At inference the seen means come from 100
remembered training images per class, the unseen ones from the support; the joint scores are negative distances.
"""

from typing import Any

import torch
from torch import Tensor, nn

from repro.cards import Look, MethodCard
from repro.errors import BadInput
from repro.methods.base import BatchSpec, EmbeddedBatch, FixedSeen
from repro.methods.shared.distances import prototypes, prototypical_loss, squared_distances
from repro.options import Positive


class ProtoNet(FixedSeen):
    """Prototypes for all classes; `temperature` divides the squared distances in training and inference."""

    card = MethodCard(
        "ProtoNet + ProtoNet",
        citation="Snell, Swersky and Zemel: Prototypical Networks for Few-shot Learning, NIPS 2017",
        url="https://arxiv.org/abs/1703.05175",
        look=Look("#de8f05", "s", "--"),
    )
    remembers = 100
    seen_measure = "proto_s"

    default_training = {"steps": 500, "lr": 0.01, "batch_norm": "train"}

    def __init__(
        self,
        backbone: nn.Module,
        dim: int,
        seen_classes: int,
        *,
        temperature: Positive = 1.0,
        way: int = 5,
        queries: int = 15,
        tasks: int = 1,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.seen_classes = seen_classes
        self.temperature = temperature
        self.way, self.queries, self.tasks = way, queries, tasks
        self.seen_prototypes_SD: Tensor
        self.register_buffer("seen_prototypes_SD", torch.zeros(seen_classes, dim))

    def remember(self, exemplars_SMD: Tensor) -> None:
        """Keep the class means of the remembered images, whatever their number."""
        self.seen_prototypes_SD.copy_(exemplars_SMD.mean(dim=1))

    def fixed_seen_logits(self, queries_ND: Tensor) -> Tensor:
        """Negative distances to the remembered class means; raises `BadInput` before anything was remembered."""
        if not self.seen_prototypes_SD.any():
            raise BadInput("ProtoNet has no seen prototypes, expected `remember` to have been called: embed them first")
        return -squared_distances(queries_ND, self.seen_prototypes_SD) / self.temperature

    def joint_unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        """Negative distances to the support's class means."""
        return -squared_distances(queries_TQD, prototypes(support_TWKD)) / self.temperature

    def batch_spec(self, shot: int) -> BatchSpec:
        """Few-shot episodes, and no other images."""
        return BatchSpec(classes=self.way, shot=shot, queries=self.queries, free=0, tasks=self.tasks)

    def loss(self, batch: EmbeddedBatch, generator: torch.Generator) -> Tensor:
        """The episodes' cross-entropy."""
        return prototypical_loss(batch.support_TCKD, batch.query_TCQD, self.temperature)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Only the embedding learns."""
        return [{"name": "backbone", "params": list(self.backbone.parameters()), "lr_scale": 1.0}]
