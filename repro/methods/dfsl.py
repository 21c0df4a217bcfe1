"""DFSL (Gidaris & Komodakis 2018, dynamic few-shot learning without forgetting).

Stage 1 is pre-training with a cosine classifier on features without a last ReLU (the backbone's option
`final_activation: false`), so that cosines take both signs. In stage 2 the embedding is frozen; an unseen class's
classifier is the mean of its unit-length shots plus an attention-weighted mean of the seen classifiers, each times a
learnt vector. Stage 2 trains on tasks in which a few seen classes play the unseen ones, and keeps refining the seen
classifiers.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from repro.cards import Look, MethodCard
from repro.methods.base import BatchSpec, EmbeddedBatch, FixedSeen, Pretraining
from repro.methods.shared.distances import frozen, seen_weight
from repro.methods.shared.fake_tail import fake_tail_loss, hidden_classes, joint_queries
from repro.methods.shared.synthesis import drop, noise_source


class DFSL(FixedSeen):
    """Cosine similarities times one learnt scale, for seen and composed classifiers alike."""

    card = MethodCard(
        "DFSL",
        citation="Gidaris and Komodakis: Dynamic Few-Shot Visual Learning without Forgetting, CVPR 2018",
        url="https://arxiv.org/abs/1804.09458",
        look=Look("#0173b2", "D", "--"),
    )
    pretraining: Pretraining = "cosine"

    default_training = {"steps": 500, "lr": 0.1}

    def __init__(
        self,
        backbone: nn.Module,
        dim: int,
        seen_classes: int,
        *,
        scale: float = 10.0,
        attention_scale: float = 10.0,
        dropout: float = 0.0,
        way: int = 5,
        queries: int = 15,
        tasks: int = 8,
        free: int = 75,
    ) -> None:
        super().__init__()
        self.backbone = frozen(backbone)
        self.seen_classes = seen_classes
        self.dropout = dropout
        self.way, self.queries, self.tasks, self.free = way, queries, tasks, free
        self.seen_weight_SD = seen_weight(seen_classes, dim, trained=True)
        self.keys_SD = nn.Parameter(self.seen_weight_SD.detach().clone())
        self.scale = nn.Parameter(torch.tensor(scale))
        self.attention_scale = nn.Parameter(torch.tensor(attention_scale))
        self.query = nn.Linear(dim, dim)
        nn.init.eye_(self.query.weight)
        nn.init.zeros_(self.query.bias)
        self.of_mean_D, self.of_attention_D = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.ones(dim))

    def load_pretrained(self, weight_SD: Tensor) -> None:
        """Take the cosine classifier; the length of its rows is its scale.

        The keys start there too, not at random as in the original: attention then begins with the classes a
        support image resembles, and a short stage 2 suffices.
        """
        super().load_pretrained(normalize(weight_SD, dim=-1))
        with torch.no_grad():
            self.scale.copy_(weight_SD.norm(dim=-1).mean())
            self.keys_SD.copy_(self.seen_weight_SD)

    def compose(self, support_TWKD: Tensor, hidden_TS: Tensor | None = None) -> Tensor:
        """Compose the unseen classifiers (T×W×D, unit length); a task does not attend to its hidden seen classes."""
        shots_TWKD = normalize(support_TWKD, dim=-1)
        queries_TWKD = normalize(self.query(shots_TWKD), dim=-1)
        scores_TWKS = self.attention_scale * queries_TWKD @ normalize(self.keys_SD, dim=-1).T
        if hidden_TS is not None:
            scores_TWKS = scores_TWKS.masked_fill(hidden_TS[:, None, None], float("-inf"))
        # Attention is linear in the values, so the mean over shots is taken before the product.
        attended_TWD = scores_TWKS.softmax(dim=-1).mean(dim=2) @ normalize(self.seen_weight_SD, dim=-1)
        return normalize(self.of_mean_D * shots_TWKD.mean(dim=2) + self.of_attention_D * attended_TWD, dim=-1)

    def fixed_seen_logits(self, queries_ND: Tensor) -> Tensor:
        """Scaled cosines with the seen classifiers."""
        return self.scale * normalize(queries_ND, dim=-1) @ normalize(self.seen_weight_SD, dim=-1).T

    def joint_unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        """Scaled cosines with the composed classifiers."""
        return self.scale * normalize(queries_TQD, dim=-1) @ self.compose(support_TWKD).transpose(1, 2)

    def batch_spec(self, shot: int) -> BatchSpec:
        """Fake few-shot tasks with their queries, and free images that stand for the other seen classes."""
        return BatchSpec(classes=self.way, shot=shot, queries=self.queries, free=self.free, tasks=self.tasks)

    def loss(self, batch: EmbeddedBatch, generator: torch.Generator) -> Tensor:
        """Joint cross-entropy over all seen classes, the fake-unseen ones with their composed classifiers.

        In training, dropout spoils the support's features: the frozen embedding has learnt these very classes, and
        scatters them far less than unseen ones.
        """
        noise = noise_source(generator, batch.support_TCKD.device) if self.training else None
        support_TCKD = drop(batch.support_TCKD, self.dropout, noise)
        composed_TCD = self.compose(support_TCKD, hidden_classes(batch.labels_TC, self.seen_classes))
        queries_TQD, targets_TQ = joint_queries(batch)
        unit_TQD = self.scale * normalize(queries_TQD, dim=-1)
        seen_TQS = unit_TQD @ normalize(self.seen_weight_SD, dim=-1).T
        tail_TQC = unit_TQD @ composed_TCD.transpose(1, 2)
        return fake_tail_loss(seen_TQS, tail_TQC, batch.labels_TC, targets_TQ)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """The weight generator, and the seen classifiers that it mixes."""
        generator = [self.keys_SD, self.attention_scale, *self.query.parameters(), self.of_mean_D, self.of_attention_D]
        return [
            {"name": "generator", "params": generator, "lr_scale": 1.0},
            {"name": "seen_classifier", "params": [self.seen_weight_SD, self.scale], "lr_scale": 1.0},
        ]
