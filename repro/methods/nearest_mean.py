"""Nearest mean (ours, a floor for every trained method): cosine similarity to class means, nothing is trained.

Seen means come from 100 remembered training images per class, unseen ones from the support, all in the pre-trained
embedding. A trained method that stays below it has learnt nothing that helps here.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from repro.cards import Look, MethodCard
from repro.errors import BadInput
from repro.methods.base import FixedSeen
from repro.methods.shared.distances import frozen, prototypes


class NearestMean(FixedSeen):
    """Cosines with the class means, seen and unseen alike."""

    remembers = 100

    card = MethodCard(
        "Nearest mean (cosine)",
        citation="Ours: a floor for every trained method",
        look=Look("#555555", "_", ":"),
    )

    def __init__(self, backbone: nn.Module, dim: int, seen_classes: int) -> None:
        super().__init__()
        self.backbone = frozen(backbone)
        self.seen_classes = seen_classes
        self.seen_prototypes_SD: Tensor
        self.register_buffer("seen_prototypes_SD", torch.zeros(seen_classes, dim))

    def remember(self, exemplars_SMD: Tensor) -> None:
        """Keep the class means of the remembered images, whatever their number."""
        self.seen_prototypes_SD.copy_(exemplars_SMD.mean(dim=1))

    def fixed_seen_logits(self, queries_ND: Tensor) -> Tensor:
        """Cosines with the remembered class means; raises `BadInput` before anything was remembered."""
        if not self.seen_prototypes_SD.any():
            raise BadInput("there are no seen means, expected `remember` to have been called: embed them first")
        return normalize(queries_ND, dim=-1) @ normalize(self.seen_prototypes_SD, dim=-1).T

    def joint_unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        """Cosines with the support's class means."""
        return normalize(queries_TQD, dim=-1) @ normalize(prototypes(support_TWKD), dim=-1).mT
