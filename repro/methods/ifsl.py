"""IFSL (Ren et al. 2019, incremental few-shot learning with attention attractor networks).

Per task, fast weights for the unseen classes minimise the joint cross-entropy of the support plus a pull towards
attractors, which attention over the seen classifiers composes. The attractors' parameters are meta-learnt through
the optimum of the fit (recurrent back-propagation there, its closed form here), on tasks in which a few seen classes
play the unseen ones; embedding and seen classifiers stay fixed.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from repro.cards import Look, MethodCard
from repro.methods.base import BatchSpec, EmbeddedBatch, FixedSeen
from repro.methods.shared.distances import frozen, prototypes, seen_weight
from repro.methods.shared.fake_tail import fake_tail_loss, hidden_classes, joint_queries
from repro.methods.shared.softmax_regression import fit_classifiers


class AttentionAttractor(FixedSeen):
    """Fits all tasks together to the optimum, by Newton's method where the authors have L-BFGS."""

    card = MethodCard(
        "IFSL",
        citation="Ren et al.: Incremental Few-Shot Learning with Attention Attractor Networks, NeurIPS 2019",
        url="https://arxiv.org/abs/1810.07218",
        look=Look("#ca9161", "X", "-."),
    )
    default_training = {"steps": 500, "lr": 0.3}

    def __init__(
        self,
        backbone: nn.Module,
        dim: int,
        seen_classes: int,
        *,
        hidden: int = 50,
        attention_scale: float = 2.0,
        strength: float = 0.1,
        way: int = 5,
        queries: int = 15,
        tasks: int = 4,
        free: int = 75,
    ) -> None:
        super().__init__()
        self.backbone = frozen(backbone)
        self.seen_classes = seen_classes
        self.way, self.queries, self.tasks, self.free = way, queries, tasks, free
        self.seen_weight_SD = seen_weight(seen_classes, dim, trained=False)
        self.bases = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, dim))
        self.offset_D = nn.Parameter(torch.zeros(dim))
        self.attention_scale = nn.Parameter(torch.tensor(attention_scale))
        self.log_strength_D = nn.Parameter(torch.full((dim,), strength).log())

    def attractors(self, support_TWKD: Tensor, hidden_TS: Tensor | None) -> Tensor:
        """Where the fast weights are pulled to (T×W×D): attention over bases made from the seen classifiers."""
        cosines_TWS = normalize(prototypes(support_TWKD), dim=-1) @ normalize(self.seen_weight_SD, dim=-1).T
        scores_TWS = self.attention_scale * cosines_TWS
        if hidden_TS is not None:
            scores_TWS = scores_TWS.masked_fill(hidden_TS[:, None], float("-inf"))
        return scores_TWS.softmax(dim=-1) @ self.bases(self.seen_weight_SD) + self.offset_D

    def fit(self, support_TWKD: Tensor, hidden_TS: Tensor | None = None) -> Tensor:
        """Minimise mean cross-entropy of the support over S∪W labels + mean over ways of ‖w − attractor‖²_strength.

        Gives the fast weights (T×W×D), differentiable in the attractors' parameters.
        """
        seen_TNS = support_TWKD.flatten(1, 2) @ self.seen_weight_SD.T
        if hidden_TS is not None:
            seen_TNS = seen_TNS.masked_fill(hidden_TS[:, None], float("-inf"))
        # The seen classifiers do not move: in the softmax they are one constant column.
        strength_D = self.log_strength_D.exp() / support_TWKD.shape[1]
        attractors_TWD = self.attractors(support_TWKD, hidden_TS)
        return fit_classifiers(support_TWKD, seen_TNS.logsumexp(dim=-1), attractors_TWD, strength_D)

    def fixed_seen_logits(self, queries_ND: Tensor) -> Tensor:
        """The pre-trained classifiers' logits."""
        return queries_ND @ self.seen_weight_SD.T

    def joint_unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        """The fast weights' logits."""
        return queries_TQD @ self.fit(support_TWKD).transpose(1, 2)

    def batch_spec(self, shot: int) -> BatchSpec:
        """Fake few-shot tasks with their queries, and free images that stand for the other seen classes."""
        return BatchSpec(classes=self.way, shot=shot, queries=self.queries, free=self.free, tasks=self.tasks)

    def loss(self, batch: EmbeddedBatch, generator: torch.Generator) -> Tensor:
        """Joint cross-entropy of the queries after the fit; its gradient runs back through the optimum."""
        fast_TCD = self.fit(batch.support_TCKD, hidden_classes(batch.labels_TC, self.seen_classes))
        queries_TQD, targets_TQ = joint_queries(batch)
        seen_TQS, tail_TQC = queries_TQD @ self.seen_weight_SD.T, queries_TQD @ fast_TCD.transpose(1, 2)
        return fake_tail_loss(seen_TQS, tail_TQC, batch.labels_TC, targets_TQ)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """All that shapes the attractors."""
        params = [*self.bases.parameters(), self.offset_D, self.attention_scale, self.log_strength_D]
        return [{"name": "attractor", "params": params, "lr_scale": 1.0}]
