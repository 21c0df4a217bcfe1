"""What CASTLE† and aCASTLE† share (paper, Appendix B): a light-weight fine-tuning step on synthesised classifiers.

For every task, W, scale and bias in W·((1 + scale)⊙φ + bias) are fine-tuned with cross-entropy on five stored images
per seen class and the support; W starts as the joint classifier that the trained CASTLE or aCASTLE gives.
"""

from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from repro.methods.base import Method
from repro.methods.shared.distances import frozen
from repro.methods.shared.finetuning import Tuned, TunedPerTask, finetune


class Adapted(TunedPerTask):
    """The trained `base_class`, adapted per task; `steps` and `lr` are for validation to choose.

    All other options are those with which the method underneath was trained.
    """

    base_class: type[Method]
    tuning_grid = tuple({"steps": steps, "lr": lr} for steps, lr in product((5, 20), (0.1, 0.3)))

    def __init__(
        self,
        backbone: nn.Module,
        dim: int,
        seen_classes: int,
        *,
        steps: int = 5,
        lr: float = 0.3,
        **base_options: Any,
    ) -> None:
        super().__init__(seen_classes, dim)
        self.base = frozen(self.base_class(backbone, dim, seen_classes, **base_options))
        self.steps, self.lr = steps, lr

    @property
    def backbone(self) -> nn.Module:  # type: ignore[override]
        """The trained method's, held once."""
        return self.base.backbone

    def load_pretrained(self, weight_SD: Tensor) -> None:
        """Pass on to the method underneath, whose own training then replaces it."""
        self.base.load_pretrained(weight_SD)

    def tune(self, support_TWKD: Tensor) -> Tuned:
        """Fine-tune for every task, from the joint classifiers that the method underneath gives.

        Their logits are linear in the features, so the logits of the unit vectors are the classifiers themselves,
        temperature included.
        """
        stored_SMD = self.store.exemplars()
        units_DD = torch.eye(support_TWKD.shape[-1], dtype=support_TWKD.dtype, device=support_TWKD.device)
        seen_TDS, tail_TDW = self.base.joint_logits(support_TWKD, units_DD.expand(len(support_TWKD), -1, -1))
        weights_TCD = torch.cat([seen_TDS, tail_TDW], dim=2).transpose(1, 2).contiguous()
        return finetune(weights_TCD, stored_SMD, support_TWKD, steps=self.steps, lr=self.lr)
