"""IFSL (Ren et al. 2019, incremental few-shot learning with attention attractor networks).

Per task, fast weights for the unseen classes minimise the joint cross-entropy of the support plus a pull towards
attractors, which attention over the seen classifiers composes. The attractors' parameters are meta-learnt through
the fit, on tasks in which a few seen classes play the unseen ones; embedding and seen classifiers stay fixed.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from repro.methods.base import BatchSpec, EmbeddedBatch, FixedSeen
from repro.methods.shared.distances import frozen, prototypes, seen_weight
from repro.methods.shared.fake_tail import fake_tail_loss, hidden_classes, joint_queries


class AttentionAttractor(FixedSeen):
    """Fits by `steps` proximal gradient steps instead of L-BFGS, so that all tasks advance together."""

    def __init__(
        self,
        backbone: nn.Module,
        dim: int,
        seen_classes: int,
        *,
        steps: int = 20,
        lr: float = 3.0,
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
        self.steps, self.lr = steps, lr
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
        _, ways, shots, _ = support_TWKD.shape
        images_TND = support_TWKD.flatten(1, 2)
        targets_NW = torch.eye(ways, device=support_TWKD.device).repeat_interleave(shots, dim=0)
        seen_TNS = images_TND @ self.seen_weight_SD.T
        if hidden_TS is not None:
            seen_TNS = seen_TNS.masked_fill(hidden_TS[:, None], float("-inf"))
        # The seen classifiers do not move: in the softmax they are one constant column.
        seen_TN1 = seen_TNS.logsumexp(dim=-1, keepdim=True)
        # Half the mean squared length bounds the cross-entropy's curvature: lr = 1 always descends.
        rate_T11 = self.lr / (0.5 * images_TND.square().sum(dim=-1).mean(dim=1)).clamp_min(1e-12)[:, None, None]
        pull_TWD = rate_T11 * 2 * self.log_strength_D.exp() / ways
        attractors_TWD = fast_TWD = self.attractors(support_TWKD, hidden_TS)
        # The quadratic pull is solved exactly in every step, however strong it has been learnt to be:
        # w ← (w − rate · gradient + pull · attractor) / (1 + pull).
        kept_TWD = 1 / (1 + pull_TWD)
        pulled_TWD, step_TWD = kept_TWD * pull_TWD * attractors_TWD, kept_TWD * (rate_T11 / (ways * shots))
        for _ in range(self.steps):
            joint_TNW = torch.cat([seen_TN1, images_TND @ fast_TWD.transpose(1, 2)], dim=-1).softmax(dim=-1)[..., 1:]
            gradient_TWD = (joint_TNW - targets_NW).transpose(1, 2) @ images_TND
            fast_TWD = torch.addcmul(torch.addcmul(pulled_TWD, kept_TWD, fast_TWD), step_TWD, gradient_TWD, value=-1)
        return fast_TWD

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
        """Joint cross-entropy of the queries after the fit; its gradient runs back through every step of the fit."""
        fast_TCD = self.fit(batch.support_TCKD, hidden_classes(batch.labels_TC, self.seen_classes))
        queries_TQD, targets_TQ = joint_queries(batch)
        seen_TQS, tail_TQC = queries_TQD @ self.seen_weight_SD.T, queries_TQD @ fast_TCD.transpose(1, 2)
        return fake_tail_loss(seen_TQS, tail_TQC, batch.labels_TC, targets_TQ)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """All that shapes the attractors."""
        params = [*self.bases.parameters(), self.offset_D, self.attention_scale, self.log_strength_D]
        return [{"name": "attractor", "params": params, "lr_scale": 1.0}]
