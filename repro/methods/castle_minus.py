"""CASTLE⁻ (§5 of the paper): CASTLE's objective without the neural dictionary.

Prototypes themselves, made unit length, join the many-shot classifiers. The paper calls these "(fixed)", so the
embedding alone learns; `train_seen_classifier` is the other reading, what CASTLE becomes with no bases.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from repro.cards import MethodCard
from repro.methods.base import BatchSpec, EmbeddedBatch, FixedSeen
from repro.methods.shared.distances import prototypes, seen_weight
from repro.methods.shared.swapping import swapped_cross_entropy
from repro.methods.shared.synthesis import draw_class_sets
from repro.options import Positive


class CastleMinus(FixedSeen):
    """Learns the embedding, and the many-shot classifiers where asked. Options as in `Castle`."""

    card = MethodCard(
        "CASTLE⁻",
        citation="Ye, Hu & Zhan: Learning Adaptive Classifiers Synthesis for Generalized Few-Shot Learning, IJCV 2021",
        url="https://arxiv.org/abs/1906.02944",
    )
    default_training = {"steps": 1000, "lr": 0.05, "batch_norm": "train"}

    def __init__(
        self,
        backbone: nn.Module,
        dim: int,
        seen_classes: int,
        *,
        temperature: Positive = 1.0,
        classes: int = 24,
        classifiers: int = 64,
        ways: int = 5,
        queries: int = 128,
        train_seen_classifier: bool = False,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.seen_classes = seen_classes
        self.seen_weight_SD = seen_weight(seen_classes, dim, trained=train_seen_classifier)
        self.temperature = temperature
        self.classes, self.classifiers, self.ways, self.queries = classes, classifiers, ways, queries

    def fixed_seen_logits(self, queries_ND: Tensor) -> Tensor:
        """Many-shot classifiers, unit length, against embeddings as they are."""
        return queries_ND @ normalize(self.seen_weight_SD, dim=-1).T / self.temperature

    def joint_unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        """Prototypes, unit length, against embeddings as they are."""
        return queries_TQD @ normalize(prototypes(support_TWKD), dim=-1).mT / self.temperature

    def batch_spec(self, shot: int) -> BatchSpec:
        """Support images of the sampled classes, and queries from anywhere among the seen classes."""
        return BatchSpec(classes=self.classes, shot=shot, queries=0, free=self.queries)

    def loss(self, batch: EmbeddedBatch, generator: torch.Generator) -> Tensor:
        """Eq. 7; a class's prototype is the same in every task, so each meets the queries once."""
        new_CB = self.joint_unseen_logits(batch.support_TCKD, batch.free_BD.unsqueeze(0))[0].T
        tasks_TW = draw_class_sets(len(new_CB), self.classifiers, self.ways, generator).to(new_CB.device)
        seen_BS = self.fixed_seen_logits(batch.free_BD)
        # Not new_CB[tasks_TW]: several threads would add up its gradient in any order.
        new_TWB = new_CB.index_select(0, tasks_TW.flatten()).unflatten(0, tasks_TW.shape)
        return swapped_cross_entropy(seen_BS, new_TWB, tasks_TW, batch.labels_TC[0], batch.free_labels_B)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Backbone and, unless it is kept as pre-trained, the seen classifier."""
        backbone = {"name": "backbone", "params": list(self.backbone.parameters()), "lr_scale": 1.0}
        seen_classifier = {"name": "seen_classifier", "params": [self.seen_weight_SD], "lr_scale": 1.0}
        return [backbone, seen_classifier] if self.seen_weight_SD.requires_grad else [backbone]
