"""Scoring many evaluation tasks with synthesised classifiers: what depends on one image alone is computed once.

Prototypes are means of images, and projections and scores are linear in the row that is projected, so a prototype's
projections are means of its images' projections. The softmax over a fixed set of rows and over the task's own rows
are two sums of exponentials, joined through their logarithms.

Dimensions as in `base` and `synthesis`, and: G images that can be support, F rows of the fixed context (the bases;
in aCASTLE the many-shot classifiers before them), Z columns of a table.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from repro.methods.base import FixedSeen, Pool, Scores, TableScorer, TaskBatch, take
from repro.methods.shared.products import products
from repro.methods.shared.synthesis import Synthesis, lengths
from repro.models.neural_dictionary import NeuralDictionary

TABLE_BYTES = 1 << 30  # a larger table of projected images is not kept: prototypes are projected task by task


class Prototypes(NamedTuple):
    """Prototypes of some tasks with their projections and their scores on the fixed context."""

    rows_TWD: Tensor
    queries_THWD: Tensor
    values_THWD: Tensor
    scores_THWF: Tensor
    more_TWZ: Tensor


class ProjectedPool:
    """Every possible support image projected once; prototypes by averaging.

    `of_rows_ZD` and `of_values_ZD` ask for more: products of an image's row and (first head's) value with these.
    """

    def __init__(
        self,
        dictionary: NeuralDictionary,
        pool: Pool,
        first_unseen: int,
        context_FD: Tensor,
        *,
        of_rows_ZD: Tensor | None = None,
        of_values_ZD: Tensor | None = None,
    ) -> None:
        self.pool, self.heads = pool, dictionary.heads
        self.context_values_HFD = dictionary.values(context_FD)
        # The projections are linear: those of the unit vectors are their matrices, several factors multiplied out.
        units_DD = torch.eye(context_FD.shape[1]).to(context_FD)
        queries_HDD, values_HDD = dictionary.queries(units_DD), dictionary.values(units_DD)
        more = [units_DD[:, :0]]
        if of_rows_ZD is not None:
            more.append(of_rows_ZD.T)
        if of_values_ZD is not None:
            more.append(values_HDD[0] @ of_values_ZD.T)
        blocks = [block.transpose(0, 1).flatten(1) for block in (queries_HDD, values_HDD, queries_HDD @ context_FD.T)]
        self.widths = [part.shape[1] for part in (*blocks, torch.cat(more, dim=1))]
        self.projection_DZ = torch.cat([*blocks, *more], dim=1)
        # Tails are unseen classes, so usually a part of the pool is enough.
        images_G = torch.nonzero(pool.labels_N >= first_unseen).squeeze(1)
        if len(images_G) * sum(self.widths) * context_FD.element_size() > TABLE_BYTES:
            images_G = images_G[:0]
        self.place_N = images_G.new_full((len(pool.labels_N),), -1)
        self.place_N[images_G] = torch.arange(len(images_G)).to(images_G)
        self.table_GZ = pool.embeddings_ND.index_select(0, images_G) @ self.projection_DZ

    def prototypes(self, support_TWK: Tensor) -> Prototypes:
        """Averages over the K images of each class: of their projections, or projected here where there is no table."""
        rows_ND = _means(self.pool.embeddings_ND, support_TWK)
        places_TWK = take(self.place_N, support_TWK)
        missing = bool((places_TWK < 0).any())
        entries_NZ = rows_ND @ self.projection_DZ if missing else _means(self.table_GZ, places_TWK)
        rows, entries = (part.unflatten(0, support_TWK.shape[:2]) for part in (rows_ND, entries_NZ))
        *blocks, more = entries.split(self.widths, dim=-1)
        queries, values, scores = (block.unflatten(-1, (self.heads, -1)).transpose(1, 2) for block in blocks)
        return Prototypes(rows, queries, values, scores, more)

    def classifiers(self, prototypes: Prototypes, skip: int = 0) -> Tensor:
        """Classifiers (T×W×D, not normalised) from prototypes, the context after its first `skip` rows, each other."""
        classifiers_TWD = prototypes.rows_TWD.clone()
        for head in range(self.heads):
            own_TWW = prototypes.queries_THWD[:, head] @ prototypes.rows_TWD.mT
            context_TWF = prototypes.scores_THWF[:, head, :, skip:]
            alpha = torch.cat([context_TWF, own_TWW], dim=-1).softmax(dim=-1)
            context_alpha, own_alpha = alpha.split([context_TWF.shape[-1], own_TWW.shape[-1]], dim=-1)
            classifiers_TWD.flatten(0, 1).addmm_(context_alpha.flatten(0, 1), self.context_values_HFD[head, skip:])
            classifiers_TWD.baddbmm_(own_alpha, prototypes.values_THWD[:, head])
        return classifiers_TWD


def _means(rows_ND: Tensor, chosen_TWK: Tensor) -> Tensor:
    """The mean of each class's K rows (T·W × D)."""
    if chosen_TWK.shape[2] == 1:
        return rows_ND.index_select(0, chosen_TWK.flatten())  # a mean of one would cost three times as much
    return F.embedding_bag(chosen_TWK.flatten(0, 1), rows_ND, mode="mean")


class CastleScorer(TableScorer):
    """Seen logits by look-up; tail classifiers from projected images."""

    def __init__(
        self, method: FixedSeen, pool: Pool, synthesis: Synthesis, dictionary: NeuralDictionary, temperature: float
    ) -> None:
        super().__init__(method, pool)
        self.average_first = synthesis.average == "pre"
        self.projected = ProjectedPool(dictionary, pool, method.seen_classes, dictionary.bases_MD)
        self.temperature = temperature

    def _classifiers(self, support_TWK: Tensor) -> Tensor:
        if self.average_first:
            return self.projected.classifiers(self.projected.prototypes(support_TWK))
        # Post-AVG: every shot is a one-shot task of its own.
        singles = support_TWK.transpose(1, 2).flatten(0, 1).unsqueeze(2)
        rows = self.projected.classifiers(self.projected.prototypes(singles))
        return rows.unflatten(0, (len(support_TWK), -1)).mean(dim=1)

    def unseen_logits(self, tasks: TaskBatch) -> Tensor:
        """Few-shot and joint use are the same: the tail's logits do not depend on the seen classes."""
        rows_TWD = self._classifiers(tasks.support_TWK)
        unit_TWD = rows_TWD.div_(lengths(rows_TWD) * self.temperature)
        return products(self.pool.embeddings_ND, tasks.queries_TQ, unit_TWD).mT

    def __call__(self, tasks: TaskBatch) -> Scores:
        return self.scores(tasks, self.unseen_logits(tasks))


class ACastleScorer:
    """All |S| + W logits without any task's |S| classifiers (one head, embeddings averaged first).

    A many-shot row attends to a fixed context and to the task's prototypes: its classifier is
    θ + a·m + Σ_i β_i v_i, with m its mix of the fixed context alone, v_i the prototypes' values, and a, β_i the shares
    of attention. Products with an image need the tables x·θ and x·m and the few x·v_i; so does the length.
    """

    def __init__(
        self,
        pool: Pool,
        dictionary: NeuralDictionary,
        theta_SD: Tensor,
        temperature: float,
        few_shot_temperature: float,
    ) -> None:
        self.pool, self.seen_classes = pool, len(theta_SD)
        self.temperature, self.few_shot_temperature = temperature, few_shot_temperature
        context_FD = torch.cat([theta_SD, dictionary.bases_MD])
        theta_queries_SD = dictionary.queries(theta_SD)[0]
        scores_SF = theta_queries_SD @ context_FD.T
        self.context_lse_S = scores_SF.logsumexp(dim=1)
        mix_SD = scores_SF.softmax(dim=1) @ dictionary.values(context_FD)[0]
        self.of_theta_NS, self.of_mix_NS = pool.embeddings_ND @ theta_SD.T, pool.embeddings_ND @ mix_SD.T
        self.theta_theta_S = theta_SD.square().sum(dim=1)
        self.theta_mix_S = (theta_SD * mix_SD).sum(dim=1)
        self.mix_mix_S = mix_SD.square().sum(dim=1)
        fixed_ZD = torch.cat([theta_SD, mix_SD])
        self.projected = ProjectedPool(
            dictionary, pool, self.seen_classes, context_FD, of_rows_ZD=theta_queries_SD, of_values_ZD=fixed_ZD
        )

    def _seen_shares(self, prototypes: Prototypes) -> tuple[Tensor, Tensor, Tensor]:
        """For every many-shot row: a (T×1×S), β (T×W×S) and the length of its classifier (T×1×S)."""
        scores_TWS, theta_value_TWS, mix_value_TWS = prototypes.more_TWZ.split(self.seen_classes, dim=-1)
        total_T1S = torch.logaddexp(self.context_lse_S, scores_TWS.logsumexp(dim=1, keepdim=True))
        a_T1S = (self.context_lse_S - total_T1S).exp()
        beta_TWS = (scores_TWS - total_T1S).exp()
        values_TWD = prototypes.values_THWD[:, 0]
        fixed_T1S = self.theta_theta_S + a_T1S * (2 * self.theta_mix_S + a_T1S * self.mix_mix_S)
        tail_TWS = 2 * (theta_value_TWS + a_T1S * mix_value_TWS) + (values_TWD @ values_TWD.mT) @ beta_TWS
        square_T1S = fixed_T1S + (beta_TWS * tail_TWS).sum(dim=1, keepdim=True)
        return a_T1S, beta_TWS, square_T1S.clamp_min(torch.finfo(square_T1S.dtype).tiny).sqrt()

    def __call__(self, tasks: TaskBatch) -> Scores:
        prototypes = self.projected.prototypes(tasks.support_TWK)
        rows_TWD = self.projected.classifiers(prototypes)
        unit_TWD = rows_TWD.div_(lengths(rows_TWD) * self.temperature)
        columns_TZD = torch.cat([unit_TWD, prototypes.values_THWD[:, 0]], dim=1)
        products_TZQ = products(self.pool.embeddings_ND, tasks.queries_TQ, columns_TZD)
        unseen_TWQ, of_values_TWQ = products_TZQ.chunk(2, dim=1)
        a_T1S, beta_TWS, length_T1S = self._seen_shares(prototypes)
        factor_T1S = 1 / (length_T1S * self.temperature)
        # (x·θ + a x·m + Σ_i β_i x·v_i) / length, the division drawn into the factors.
        seen_TQS = take(self.of_theta_NS, tasks.queries_TQ).mul_(factor_T1S)
        seen_TQS.addcmul_(take(self.of_mix_NS, tasks.queries_TQ), a_T1S * factor_T1S)
        seen_TQS.baddbmm_(of_values_TWQ.mT, beta_TWS * factor_T1S)
        return Scores.of(seen_TQS, unseen_TWQ.mT)

    def unseen_logits(self, tasks: TaskBatch) -> Tensor:
        """Few-shot use: the many-shot classifiers are left out of the context."""
        rows_TWD = self.projected.classifiers(self.projected.prototypes(tasks.support_TWK), self.seen_classes)
        unit_TWD = rows_TWD.div_(lengths(rows_TWD) * self.few_shot_temperature)
        return products(self.pool.embeddings_ND, tasks.queries_TQ, unit_TWD).mT
