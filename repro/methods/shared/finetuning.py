"""Fine-tuning at inference, all tasks at once: W, scale and bias in W·((1 + scale)⊙φ + bias) (paper, Appendix B).

Dimensions as in `base.py`; C = S + W joint classes, M stored images per seen class, N images in all. Gradients are
written out: with effective weights E = W⊙(1 + scale) and offsets o = W·bias the model is linear in the features,
so the stored images, which all tasks share, meet all tasks' classifiers in one matrix product.
"""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from repro.errors import BadInput
from repro.methods.base import Method

TASKS_AT_ONCE = 32  # the largest intermediate, N×32×C, then stays near the processor


class ExemplarStore(nn.Module):
    """The embedded training images of the seen classes that fine-tuning replays; saved with the model."""

    def __init__(self, seen_classes: int, per_class: int, dim: int) -> None:
        super().__init__()
        self.images_SMD: Tensor
        self.register_buffer("images_SMD", torch.zeros(seen_classes, per_class, dim))

    def fill(self, exemplars_SMD: Tensor) -> None:
        """Keep these; raises `BadInput` where their number is not the one announced."""
        if exemplars_SMD.shape != self.images_SMD.shape:
            raise BadInput(
                f"got exemplars of shape {tuple(exemplars_SMD.shape)}, expected {tuple(self.images_SMD.shape)} (seen "
                "classes, images per class, features): draw `remembers` training images of every seen class"
            )
        self.images_SMD.copy_(exemplars_SMD)

    def exemplars(self) -> Tensor:
        """Give them back (S×M×D); raises `BadInput` before there are any."""
        if not self.images_SMD.any():
            raise BadInput("no exemplars are stored, expected `remember` to have been called: embed them first")
        return self.images_SMD


@dataclass(frozen=True)
class Tuned:
    """What fine-tuning gives for every task."""

    weights_TCD: Tensor
    scale_TD: Tensor
    bias_TD: Tensor

    def features(self, images_TND: Tensor) -> Tensor:
        """The adapted embedding (1 + scale)⊙φ + bias (T×N×D)."""
        return images_TND * (1 + self.scale_TD).unsqueeze(1) + self.bias_TD.unsqueeze(1)

    def logits(self, queries_TQD: Tensor) -> Tensor:
        """Joint logits over the seen, then the unseen classes (T×Q×C)."""
        return self.features(queries_TQD) @ self.weights_TCD.transpose(1, 2)


class TunedPerTask(Method):
    """A method that fits every task at inference and then predicts with the tuned classifier."""

    remembers, few_shot_is_joint = 5, True

    def __init__(self, seen_classes: int, dim: int) -> None:
        super().__init__()
        self.seen_classes = seen_classes
        self.store = ExemplarStore(seen_classes, self.remembers, dim)

    def remember(self, exemplars_SMD: Tensor) -> None:
        """Store the images of the seen classes that fine-tuning replays."""
        self.store.fill(exemplars_SMD)

    @abstractmethod
    def tune(self, support_TWKD: Tensor) -> Tuned:
        """Fine-tune for every task."""

    def joint_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> tuple[Tensor, Tensor]:
        """The tuned classifier's logits."""
        joint_TQC = self.tune(support_TWKD).logits(queries_TQD)
        return joint_TQC[..., : self.seen_classes], joint_TQC[..., self.seen_classes :]

    def unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        """Few-shot use: the unseen part of the joint prediction."""
        return self.joint_logits(support_TWKD, queries_TQD)[1]


@dataclass(frozen=True)
class Distillation:
    """Hold on to what the old classifier said: `weight` · temperature² · KL(old ‖ new) over the seen classes."""

    old_SD: Tensor
    weight: float
    temperature: float

    @property
    def share(self) -> float:
        """The gradient with respect to the logits is this times (new − old), both softened."""
        return self.weight * self.temperature

    def targets(self, images: Tensor) -> Tensor:
        """What the old classifier adds to the one-hot targets of these images (…×D → …×S)."""
        return self.share * (images @ self.old_SD.T / self.temperature).softmax(dim=-1)

    def predictions(self, logits: Tensor) -> Tensor:
        """Probabilities, and the softened ones of the seen classes on top (…×C); the logits are spent.

        softmax(z) is softmax(z/T) to the power of T, normalised anew: one exponential gives both.
        """
        soft = logits.sub_(logits.amax(dim=-1, keepdim=True)).div_(self.temperature).exp_()
        seen = soft[..., : len(self.old_SD)]
        found = soft.pow(self.temperature)
        found.mul_(1 / found.sum(dim=-1, keepdim=True))
        found[..., : len(self.old_SD)].addcmul_(seen, self.share / seen.sum(dim=-1, keepdim=True))
        return found


def finetune(
    weights_TCD: Tensor,
    stored_SMD: Tensor,
    support_TWKD: Tensor,
    *,
    steps: int,
    lr: float,
    distillation: Distillation | None = None,
) -> Tuned:
    """Take `steps` gradient steps per task on the mean loss over stored and support images.

    The loss is cross-entropy, plus distillation where it is given. The start is the given joint classifiers, scale 0
    and bias 0. `lr` is relative to the loss's curvature in W (half the mean squared feature length), so that one
    value serves features of any dimension and length.
    """
    curvature = 0.5 * stored_SMD.square().sum(dim=-1).mean() * (1 + (distillation.weight if distillation else 0.0))
    rate = lr / float(curvature)
    parts = [
        _finetune_part(weights, stored_SMD, support, distillation, steps=steps, rate=rate)
        for weights, support in zip(weights_TCD.split(TASKS_AT_ONCE), support_TWKD.split(TASKS_AT_ONCE), strict=True)
    ]
    return Tuned(
        torch.cat([part.weights_TCD for part in parts]),
        torch.cat([part.scale_TD for part in parts]),
        torch.cat([part.bias_TD for part in parts]),
    )


def _finetune_part(
    weights_TCD: Tensor,
    stored_SMD: Tensor,
    support_TWKD: Tensor,
    distillation: Distillation | None,
    *,
    steps: int,
    rate: float,
) -> Tuned:
    stored_ND, support_TND = stored_SMD.flatten(0, 1), support_TWKD.flatten(1, 2)
    step = rate / (len(stored_ND) + support_TND.shape[1])  # the gradients below are sums over images
    # A logit's gradient is prediction − target, and the targets' part of every sum is constant.
    wanted_TCD, counts_TC = _targets(stored_SMD, support_TWKD, distillation)
    weights_TCD = weights_TCD.clone()
    scale_TD = weights_TCD.new_zeros(len(weights_TCD), weights_TCD.shape[2])
    bias_TD = scale_TD.clone()
    for _ in range(steps):
        effective_TCD = weights_TCD * (1 + scale_TD).unsqueeze(1)
        offsets_TC = (weights_TCD @ bias_TD.unsqueeze(2)).squeeze(2)
        stored_logits = torch.addmm(offsets_TC.flatten(), stored_ND, effective_TCD.flatten(0, 1).T)
        stored_NTC = _predictions(stored_logits.view(-1, *offsets_TC.shape), distillation)
        support_logits_TNC = torch.baddbmm(offsets_TC.unsqueeze(1), support_TND, effective_TCD.transpose(1, 2))
        support_TNC = _predictions(support_logits_TNC, distillation)
        by_effective_TCD = (stored_NTC.flatten(1).T @ stored_ND).view_as(effective_TCD)
        by_effective_TCD.baddbmm_(support_TNC.transpose(1, 2), support_TND).sub_(wanted_TCD)
        by_offset_TC = stored_NTC.sum(dim=0).add_(support_TNC.sum(dim=1)).sub_(counts_TC)
        # Chain rule from E = W⊙(1 + scale) and o = W·bias.
        by_scale_TD = (by_effective_TCD * weights_TCD).sum(dim=1)
        by_bias_TD = (by_offset_TC.unsqueeze(1) @ weights_TCD).squeeze(1)
        by_weights_TCD = by_effective_TCD.mul_((1 + scale_TD).unsqueeze(1))
        by_weights_TCD += by_offset_TC.unsqueeze(2) * bias_TD.unsqueeze(1)
        weights_TCD.sub_(by_weights_TCD, alpha=step)
        scale_TD.sub_(by_scale_TD, alpha=step)
        bias_TD.sub_(by_bias_TD, alpha=step)
    return Tuned(weights_TCD, scale_TD, bias_TD)


def _predictions(logits: Tensor, distillation: Distillation | None) -> Tensor:
    return distillation.predictions(logits) if distillation else logits.softmax(dim=-1)


def _targets(stored_SMD: Tensor, support_TWKD: Tensor, distillation: Distillation | None) -> tuple[Tensor, Tensor]:
    """Target-weighted sums of the images (T×C×D) and sums of the targets (T×C), over stored and support images."""
    seen_TSD = stored_SMD.sum(dim=1).expand(len(support_TWKD), -1, -1)
    counts_TC = seen_TSD.new_full((len(support_TWKD), len(stored_SMD)), stored_SMD.shape[1])
    if distillation:
        stored_ND, support_TND = stored_SMD.flatten(0, 1), support_TWKD.flatten(1, 2)
        of_stored_NS, of_support_TNS = distillation.targets(stored_ND), distillation.targets(support_TND)
        seen_TSD = seen_TSD + of_stored_NS.T @ stored_ND + of_support_TNS.transpose(1, 2) @ support_TND
        counts_TC = counts_TC + of_stored_NS.sum(dim=0) + of_support_TNS.sum(dim=1)
    shots_TW = counts_TC.new_full(support_TWKD.shape[:2], support_TWKD.shape[2])
    return torch.cat([seen_TSD, support_TWKD.sum(dim=2)], dim=1), torch.cat([counts_TC, shots_TW], dim=1)
