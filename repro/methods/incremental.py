"""LwF and iCaRL (paper, Appendix B; Li & Hoiem 2018, Rebuffi et al. 2017): incremental learning at inference.

Both start from the pre-trained classifier and, for every task, fine-tune on five stored images per seen class and the
support with cross-entropy and distillation of the old seen outputs. LwF then predicts with the classifier, iCaRL with
the nearest mean of exemplars in the adapted feature space.

Divergence: the paper fine-tunes the whole network for every one of 10,000 tasks; here the joint classifier and the
embedding's scale and bias adapt while the backbone stays fixed, which keeps the ten thousand fits affordable.
"""

from itertools import product

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from repro.methods.distances import frozen, prototypes, scaled_like, seen_weight, squared_distances
from repro.methods.finetuning import Distillation, Tuned, TunedPerTask, finetune


class LwF(TunedPerTask):
    """Learning without forgetting; `steps`, `lr` and the distillation `weight` are for validation to choose."""

    tuning_grid = tuple(
        {"steps": steps, "lr": lr, "weight": weight}
        for steps, lr, weight in product((5, 10), (3.0, 10.0), (0.3, 1.0, 3.0))
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
        temperature: float = 2.0,
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


class ICaRL(LwF):
    """The same fine-tuning; a class is the mean of its unit-length exemplars, itself brought to unit length."""

    def joint_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> tuple[Tensor, Tensor]:
        """Negative squared distances to the means of exemplars in the adapted feature space."""
        tuned = self.tune(support_TWKD)
        stored_SMD = self.store.exemplars()
        stored_TND = tuned.features(stored_SMD.flatten(0, 1).unsqueeze(0))
        seen_TSD = _exemplar_means(stored_TND.unflatten(1, stored_SMD.shape[:2]))
        shots_TWKD = tuned.features(support_TWKD.flatten(1, 2)).view_as(support_TWKD)
        queries_TQD = normalize(tuned.features(queries_TQD), dim=-1)
        tail_TWD = _exemplar_means(shots_TWKD)
        return -squared_distances(queries_TQD, seen_TSD), -squared_distances(queries_TQD, tail_TWD)


def _exemplar_means(exemplars_TSMD: Tensor) -> Tensor:
    return normalize(prototypes(normalize(exemplars_TSMD, dim=-1)), dim=-1)
