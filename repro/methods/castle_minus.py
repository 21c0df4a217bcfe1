"""CASTLE⁻ (§5 of the paper): CASTLE's objective without the neural dictionary.

Prototypes themselves, made unit length, join the many-shot classifiers; it is what CASTLE becomes with no bases.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from repro.methods.base import BatchSpec, EmbeddedBatch, FixedSeen
from repro.methods.shared.distances import prototypes, seen_weight
from repro.methods.shared.swapping import swapped_cross_entropy
from repro.methods.shared.synthesis import draw_tasks


class CastleMinus(FixedSeen):
    """Learns the embedding and the many-shot classifiers only. Options as in `Castle`."""

    def __init__(
        self,
        backbone: nn.Module,
        dim: int,
        seen_classes: int,
        *,
        temperature: float = 1.0,
        classes: int = 24,
        classifiers: int = 64,
        ways: int = 5,
        queries: int = 128,
        train_seen_classifier: bool = True,
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
        tasks_TW = draw_tasks(len(new_CB), self.classifiers, self.ways, generator).to(new_CB.device)
        seen_BS = self.fixed_seen_logits(batch.free_BD)
        # Not new_CB[tasks_TW]: several threads would add up its gradient in any order.
        new_TWB = new_CB.index_select(0, tasks_TW.flatten()).unflatten(0, tasks_TW.shape)
        return swapped_cross_entropy(seen_BS, new_TWB, tasks_TW, batch.labels_TC[0], batch.free_labels_B)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Backbone and, unless it is kept as pre-trained, the seen classifier."""
        groups = {"backbone": list(self.backbone.parameters()), "seen_classifier": [self.seen_weight_SD]}
        return [
            {"name": name, "params": [one for one in members if one.requires_grad], "lr_scale": 1.0}
            for name, members in groups.items()
        ]
