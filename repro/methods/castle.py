"""CASTLE (§3.2 and §3.3 of the paper): tail classifiers synthesised with a neural dictionary.

Prototypes of the task attend to shared bases and to each other; the result joins the many-shot classifiers, all of
unit length. Training swaps the classifiers of a few sampled seen classes for synthesised ones, in many random ways
per step, and classifies seen images with each of the joint classifiers (Eq. 7).
"""

from typing import Any

import torch
from torch import Tensor, nn

from repro.cards import Look, MethodCard
from repro.methods.base import BatchSpec, EmbeddedBatch, FixedSeen, Pool, Scorer
from repro.methods.shared.distances import seen_weight
from repro.methods.shared.swapping import own_cross_entropy, swapped_cross_entropy
from repro.methods.shared.synthesis import Average, Synthesis, draw_class_sets, lengths, noise_source
from repro.methods.shared.synthesis_scorers import CastleScorer
from repro.options import Positive


class Castle(FixedSeen):
    """See the module. Options default to the paper's values; dropout is the released commands', the paper is silent."""

    card = MethodCard(
        "CASTLE",
        citation="Ye, Hu & Zhan: Learning Adaptive Classifiers Synthesis for Generalized Few-Shot Learning, IJCV 2021",
        url="https://arxiv.org/abs/1906.02944",
        look=Look("#d55e00", "o", "-"),
    )
    default_training = {"steps": 1000, "lr": 0.05, "batch_norm": "train"}

    def __init__(
        self,
        backbone: nn.Module,
        dim: int,
        seen_classes: int,
        *,
        dictionary: str = "paper",
        ratio: float = 2.0,
        heads: int = 1,
        score_scale: float | None = None,
        bases_std: float | None = None,
        dropout: float = 0.5,
        average: Average = "pre",
        temperature: Positive = 1.0,
        classes: int = 24,
        classifiers: int = 64,
        ways: int = 5,
        queries: int = 128,
        unified: bool = True,
        train_seen_classifier: bool = True,
        dictionary_lr_scale: float = 1.0,
    ) -> None:
        """`ratio` is bases per seen class; a step has `classifiers` tasks of `ways` of its `classes` classes.

        Without `unified` synthesis learns the few-shot objective alone, without the seen classifiers: the "vanilla
        synthesized classifiers" of the paper's Appendix B.
        """
        super().__init__()
        self.backbone = backbone
        self.seen_classes = seen_classes
        self.seen_weight_SD = seen_weight(seen_classes, dim, trained=train_seen_classifier and unified)
        self.synthesis = Synthesis(
            dim,
            seen_classes,
            dictionary=dictionary,
            ratio=ratio,
            heads=heads,
            score_scale=score_scale,
            bases_std=bases_std,
            dropout=dropout,
            average=average,
        )
        self.temperature, self.unified = temperature, unified
        self.selected_calibrated = not unified  # else its two kinds of classifiers have never met
        self.classes, self.classifiers, self.ways, self.queries = classes, classifiers, ways, queries
        self.dictionary_lr_scale = dictionary_lr_scale

    def fixed_seen_logits(self, queries_ND: Tensor) -> Tensor:
        """Many-shot classifiers, unit length, against embeddings as they are."""
        unit_SD = self.seen_weight_SD / lengths(self.seen_weight_SD)
        return queries_ND @ unit_SD.T / self.temperature

    def joint_unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        """Synthesised tail classifiers against embeddings as they are."""
        classifiers_TWD = self.synthesis.classifiers(self.synthesis.views(support_TWKD))
        return queries_TQD @ classifiers_TWD.mT / self.temperature

    def scorer(self, pool: Pool) -> Scorer:
        """With a dictionary, its projections are taken once per image too."""
        dictionary = self.synthesis.dictionary
        if dictionary is None:
            return super().scorer(pool)
        return CastleScorer(self, pool, self.synthesis, dictionary, self.temperature)

    def batch_spec(self, shot: int) -> BatchSpec:
        """Support images of the sampled classes, and queries from anywhere among the seen classes.

        The few-shot objective has as many queries in all, from the sampled classes.
        """
        if self.unified:
            return BatchSpec(classes=self.classes, shot=shot, queries=0, free=self.queries)
        return BatchSpec(classes=self.classes, shot=shot, queries=max(1, self.queries // self.classes), free=0)

    def loss(self, batch: EmbeddedBatch, generator: torch.Generator) -> Tensor:
        """Eq. 7, or the few-shot objective, averaged over all random tasks and queries of the step."""
        rows_VCD = self.synthesis.views(batch.support_TCKD[0])
        views, classes, _ = rows_VCD.shape
        tasks_TW = draw_class_sets(classes, self.classifiers, self.ways, generator).to(rows_VCD.device)
        noise = noise_source(generator, rows_VCD.device) if self.training else None
        firsts_V1 = torch.arange(0, views * classes, classes).to(tasks_TW).unsqueeze(1)
        shared = self.synthesis.share(rows_VCD.flatten(0, 1))
        new_TWD = self.synthesis.mix(shared, firsts_V1 + tasks_TW.unsqueeze(1), noise)
        queries_BD = batch.free_BD if self.unified else batch.query_TCQD[0].flatten(0, 1)
        new_TWB = (new_TWD / lengths(new_TWD)) @ queries_BD.T / self.temperature
        if not self.unified:
            return own_cross_entropy(new_TWB, tasks_TW, classes)
        seen_BS = self.fixed_seen_logits(queries_BD)
        return swapped_cross_entropy(seen_BS, new_TWB, tasks_TW, batch.labels_TC[0], batch.free_labels_B)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Backbone, dictionary and, unless it is kept as pre-trained, the seen classifier."""
        return self.synthesis.parameter_groups(self.backbone, self.seen_weight_SD, self.dictionary_lr_scale)
