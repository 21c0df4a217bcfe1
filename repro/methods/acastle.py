"""aCASTLE (§3.2 of the paper): the dictionary synthesises head classifiers too, in the light of the task's tail.

The many-shot classifiers join the prototypes as task-specific bases, and all |S| + N classifiers are synthesised from
them. Training is CASTLE's (Eq. 7): in each random task prototypes take the place of the sampled classes' many-shot
classifiers, then every row is synthesised.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from repro.cards import Look, MethodCard
from repro.methods.base import BatchSpec, EmbeddedBatch, Method, Pool, Scorer
from repro.methods.shared.chunks import mean_over_chunks
from repro.methods.shared.distances import seen_weight
from repro.methods.shared.synthesis import Average, SharedRows, Synthesis, draw_class_sets, lengths, noise_source
from repro.methods.shared.synthesis_scorers import ACastleScorer
from repro.options import Positive


class ACastle(Method):
    """See the module. Options default to the paper's values; dropout is the released commands', the paper is silent."""

    card = MethodCard(
        "aCASTLE",
        citation="Ye, Hu & Zhan: Learning Adaptive Classifiers Synthesis for Generalized Few-Shot Learning, IJCV 2021",
        url="https://arxiv.org/abs/1906.02944",
        look=Look("#cc78bc", "*", "-"),
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
        training_temperature: Positive | None = None,
        classes: int = 24,
        classifiers: int = 64,
        ways: int = 5,
        queries: int = 128,
        chunk: int = 16,
        train_seen_classifier: bool = True,
        dictionary_lr_scale: float = 1.0,
    ) -> None:
        """`ratio` is bases per seen class; a step has `classifiers` tasks of `ways` of its `classes` classes.

        `training_temperature` is that of the loss and of few-shot use, `temperature` unless given: the released code
        has 1 there. `chunk` tasks are in memory at a time.
        """
        super().__init__()
        self.backbone = backbone
        self.seen_classes = seen_classes
        self.seen_weight_SD = seen_weight(seen_classes, dim, trained=train_seen_classifier)
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
        self.temperature = temperature
        self.training_temperature = training_temperature or temperature
        self.classes, self.classifiers, self.ways, self.queries = classes, classifiers, ways, queries
        self.chunk = chunk
        self.dictionary_lr_scale = dictionary_lr_scale

    def joint_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> tuple[Tensor, Tensor]:
        """All |S| + W classifiers synthesised together, against embeddings as they are."""
        rows_TVWD = self.synthesis.views(support_TWKD)
        seen_TVSD = self.seen_weight_SD.expand(*rows_TVWD.shape[:2], -1, -1)
        classifiers_TND = self.synthesis.classifiers(torch.cat([seen_TVSD, rows_TVWD], dim=2))
        logits_TQN = queries_TQD @ classifiers_TND.mT / self.temperature
        return logits_TQN[..., : self.seen_classes], logits_TQN[..., self.seen_classes :]

    def unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        """Few-shot use: synthesis from the task's prototypes alone, without the many-shot classifiers."""
        classifiers_TWD = self.synthesis.classifiers(self.synthesis.views(support_TWKD))
        return queries_TQD @ classifiers_TWD.mT / self.training_temperature

    def many_shot_logits(self, queries_ND: Tensor) -> Tensor:
        """The many-shot classifiers before synthesis, unit length."""
        return queries_ND @ (self.seen_weight_SD / lengths(self.seen_weight_SD)).T / self.temperature

    def scorer(self, pool: Pool) -> Scorer:
        """In the usual setting no task's |S| + W classifiers are ever written out."""
        dictionary = self.synthesis.dictionary
        if dictionary is None or dictionary.heads > 1 or self.synthesis.average == "post":
            return super().scorer(pool)
        return ACastleScorer(pool, dictionary, self.seen_weight_SD, self.temperature, self.training_temperature)

    def batch_spec(self, shot: int) -> BatchSpec:
        """Support images of the sampled classes, and queries from anywhere among the seen classes."""
        return BatchSpec(classes=self.classes, shot=shot, queries=0, free=self.queries)

    def loss(self, batch: EmbeddedBatch, generator: torch.Generator) -> Tensor:
        """Eq. 7, averaged over all random tasks and queries of the step, `chunk` tasks at a time."""
        rows_VCD = self.synthesis.views(batch.support_TCKD[0])
        tasks_TW = draw_class_sets(rows_VCD.shape[1], self.classifiers, self.ways, generator).to(rows_VCD.device)
        noise = noise_source(generator, rows_VCD.device) if self.training else None
        shared = self.synthesis.share(torch.cat([self.seen_weight_SD, rows_VCD.flatten(0, 1)]))
        labels_B = batch.free_labels_B

        def loss_of(chosen_TVS: Tensor, free_BD: Tensor, *shared: Tensor) -> Tensor:
            joint_TSD = self.synthesis.mix(SharedRows(*shared), chosen_TVS, noise)
            # Dividing the logits by the lengths instead of the classifiers saves two passes over T×S×D.
            logits_TSB = joint_TSD @ free_BD.T / (lengths(joint_TSD) * self.training_temperature)
            return F.cross_entropy(logits_TSB, labels_B.expand(len(logits_TSB), -1))

        chosen_TVS = self._joint_rows(tasks_TW, batch.labels_TC[0], len(rows_VCD))
        return mean_over_chunks(loss_of, chosen_TVS, self.chunk, batch.free_BD, *shared)

    def _joint_rows(self, tasks_TW: Tensor, classes_C: Tensor, views: int) -> Tensor:
        """Which shared row stands for each seen class (T×V×S): its many-shot classifier, or the task's prototype.

        Shared rows are the S many-shot classifiers, then the C prototypes of each view.
        """
        tasks, ways = tasks_TW.shape
        many_shot_S = torch.arange(self.seen_classes).to(tasks_TW)
        firsts_V1 = (self.seen_classes + len(classes_C) * torch.arange(views)).to(tasks_TW).unsqueeze(1)
        labels_TVW = classes_C[tasks_TW].unsqueeze(1).expand(-1, views, -1)
        joint_TVS = many_shot_S.expand(tasks, views, -1)
        return joint_TVS.scatter(2, labels_TVW, firsts_V1 + tasks_TW.unsqueeze(1))

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Backbone, dictionary and, unless it is kept as pre-trained, the seen classifier."""
        return self.synthesis.parameter_groups(self.backbone, self.seen_weight_SD, self.dictionary_lr_scale)
