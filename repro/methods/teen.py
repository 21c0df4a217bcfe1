"""TEEN (Wang et al. 2023, few-shot class-incremental learning via training-free prototype calibration).

A mean of few images leans towards the seen classes it resembles; TEEN moves it on purpose, by a share α towards the
seen means that softmax(τ · cosine) weighs. Means are taken as directions, of length 1 before and after the weighing, as
in its authors' code, whose defaults α = 0.5 and τ = 16 are ours. Classification is by cosine with the seen and the
moved unseen means. Nothing is trained; the paper that is replicated here does not have it.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from repro.cards import Look, MethodCard
from repro.errors import BadInput
from repro.methods.base import FixedSeen
from repro.methods.shared.distances import frozen, prototypes


class TEEN(FixedSeen):
    """Seen means come from 100 remembered training images per class, in the pre-trained embedding."""

    remembers = 100

    card = MethodCard(
        "TEEN",
        citation="Wang et al.: Few-Shot Class-Incremental Learning via Training-Free Prototype Calibration, 2023",
        url="https://arxiv.org/abs/2312.05229",
        look=Look("#117733", "p", "--"),
    )

    def __init__(
        self, backbone: nn.Module, dim: int, seen_classes: int, *, alpha: float = 0.5, tau: float = 16.0
    ) -> None:
        """`alpha` is the share of the seen means in an unseen one, `tau` sharpens which of them count."""
        super().__init__()
        if not 0 <= alpha <= 1:
            raise BadInput(f"alpha is {alpha}; expected a share between 0 and 1")
        self.backbone = frozen(backbone)
        self.seen_classes = seen_classes
        self.alpha, self.tau = alpha, tau
        self.seen_prototypes_SD: Tensor
        self.register_buffer("seen_prototypes_SD", torch.zeros(seen_classes, dim))

    def remember(self, exemplars_SMD: Tensor) -> None:
        """Keep the class means of the remembered images, whatever their number."""
        self.seen_prototypes_SD.copy_(exemplars_SMD.mean(dim=1))

    def calibrated(self, support_TWKD: Tensor) -> Tensor:
        """Directions of the unseen means (T×W×D) moved towards the seen ones: with all c of length 1,
        (1 − α) c + α Δ/‖Δ‖ with Δ = Σ_b softmax_b(τ c·c_b) c_b."""
        means_TWD = normalize(prototypes(support_TWKD), dim=-1)
        seen_SD = normalize(self.seen_prototypes_SD, dim=-1)
        borrowed_TWD = (self.tau * means_TWD @ seen_SD.T).softmax(dim=-1) @ seen_SD
        return (1 - self.alpha) * means_TWD + self.alpha * normalize(borrowed_TWD, dim=-1)

    def fixed_seen_logits(self, queries_ND: Tensor) -> Tensor:
        """Cosines with the remembered class means; raises `BadInput` before anything was remembered."""
        if not self.seen_prototypes_SD.any():
            raise BadInput("there are no seen means, expected `remember` to have been called: embed them first")
        return normalize(queries_ND, dim=-1) @ normalize(self.seen_prototypes_SD, dim=-1).T

    def joint_unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        """Cosines with the moved class means."""
        return normalize(queries_TQD, dim=-1) @ normalize(self.calibrated(support_TWKD), dim=-1).mT
