"""What LwF and iCaRL share (paper, Appendix B): incremental learning at inference, by replay and distillation.

Both start from the pre-trained classifier and, for every task, fine-tune on five stored images per seen class and the
support with cross-entropy and distillation of the old seen outputs.

Divergence: the paper fine-tunes the whole network for every one of 10,000 tasks; here the joint classifier and the
embedding's scale and bias adapt while the backbone stays fixed, which keeps the ten thousand fits affordable.
"""

import torch
from torch import Tensor, nn

from repro.methods.shared.distances import frozen, prototypes, scaled_like, seen_weight
from repro.methods.shared.finetuning import Distillation, Tuned, TunedPerTask, finetune
from repro.options import Positive


class Incremental(TunedPerTask):
    """The fine-tuning; `lr` and the distillation `weight` are for validation to choose, for every shot anew.

    A larger rate wants more distillation. Twice the steps cost twice the time and gain nothing on validation tasks.
    """

    tuning_grid = (
        {"lr": 3.0, "weight": 0.3},
        {"lr": 10.0, "weight": 0.3},
        {"lr": 10.0, "weight": 1.0},
        {"lr": 30.0, "weight": 3.0},
    )

    def __init__(
        self,
        backbone: nn.Module,
        dim: int,
        seen_classes: int,
        *,
        steps: int = 5,
        lr: float = 10.0,
        weight: float = 1.0,
        temperature: Positive = 2.0,
    ) -> None:
        super().__init__(seen_classes, dim)
        self.backbone = frozen(backbone)
        self.steps, self.lr, self.weight, self.temperature = steps, lr, weight, temperature
        self.seen_weight_SD = seen_weight(seen_classes, dim, trained=False)

    def tune(self, support_TWKD: Tensor) -> Tuned:
        """Fine-tune for every task, from the seen classifiers and the support's prototypes."""
        tail_TWD = scaled_like(self.seen_weight_SD, prototypes(support_TWKD))
        seen_TSD = self.seen_weight_SD.expand(len(tail_TWD), -1, -1)
        return finetune(
            torch.cat([seen_TSD, tail_TWD], dim=1),
            self.store.exemplars(),
            support_TWKD,
            steps=self.steps,
            lr=self.lr,
            distillation=Distillation(self.seen_weight_SD, self.weight, self.temperature),
        )
