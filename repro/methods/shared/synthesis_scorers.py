"""Scoring many evaluation tasks with synthesised classifiers: what depends on one image alone is computed once.

Prototypes are means of images, and projections and scores are linear in the row that is projected, so a prototype's
projections are means of its images' projections. The softmax over a fixed set of rows and over the task's own rows
are two sums of exponentials, joined through their logarithms.

Dimensions as in `base` and `synthesis`, and: G images that can be support, F rows of the fixed context (the bases;
in aCASTLE the many-shot classifiers before them), Z columns of a table.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from repro.methods.base import FixedSeen, Pool, Scores, TableScorer, TaskBatch, take
from repro.methods.shared.synthesis import Synthesis, lengths
from repro.models.neural_dictionary import NeuralDictionary

GATHERED_BYTES = 3 << 20  # embeddings gathered at a time: what stays in a core's share of the cache
TABLE_BYTES = 1 << 30  # a larger table of projected images is not kept: prototypes are projected task by task


def in_pieces(pool: Pool, queries_TQ: Tensor) -> Iterator[slice]:
    """Split tasks so that the gathered queries of a piece stay in the cache."""
    per_task = queries_TQ.shape[1] * pool.embeddings_ND[0].nbytes
    size = max(1, GATHERED_BYTES // max(1, per_task))
    for start in range(0, len(queries_TQ), size):
        yield slice(start, start + size)


def products(pool: Pool, queries_TQ: Tensor, columns_TZD: Tensor) -> Tensor:
    """Every query's embedding times its task's columns (T×Z×Q)."""
    return torch.cat(
        [columns_TZD[piece] @ take(pool.embeddings_ND, queries_TQ[piece]).mT for piece in in_pieces(pool, queries_TQ)]
    )


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
        self.dictionary, self.pool = dictionary, pool
        self.context_FD = context_FD
        self.context_values_HFD = dictionary.values(context_FD)
        self.of_rows_ZD, self.of_values_ZD = of_rows_ZD, of_values_ZD
        self.heads = dictionary.heads
        # Tails are unseen classes, so usually a part of the pool is enough.
        images_G = torch.nonzero(pool.labels_N >= first_unseen).squeeze(1)
        self.widths = [part.shape[1] for part in self._parts(pool.embeddings_ND[:1])]
        if len(images_G) * sum(self.widths) * pool.embeddings_ND.element_size() > TABLE_BYTES:
            images_G = images_G[:0]
        self.place_N = images_G.new_full((len(pool.labels_N),), -1)
        self.place_N[images_G] = torch.arange(len(images_G)).to(images_G)
        self.table_GZ = torch.cat(self._parts(pool.embeddings_ND.index_select(0, images_G)), dim=1)

    def _parts(self, rows_GD: Tensor) -> list[Tensor]:
        """All that is linear in a row, each part G × its own width."""
        queries_HGD, values_HGD = self.dictionary.queries(rows_GD), self.dictionary.values(rows_GD)
        blocks = [queries_HGD, values_HGD, queries_HGD @ self.context_FD.T]
        more = [rows_GD[:, :0]]
        if self.of_rows_ZD is not None:
            more.append(rows_GD @ self.of_rows_ZD.T)
        if self.of_values_ZD is not None:
            more.append(values_HGD[0] @ self.of_values_ZD.T)
        return [rows_GD, *(block.transpose(0, 1).flatten(1) for block in blocks), torch.cat(more, dim=1)]

    def prototypes(self, support_TWK: Tensor) -> Prototypes:
        """Averages over the K images of each class: of their projections, or projected here where there is no table."""
        tasks, ways, shots = support_TWK.shape
        places = self.place_N[support_TWK].reshape(-1, shots)
        if bool((places < 0).any()):
            rows_GD = F.embedding_bag(support_TWK.reshape(-1, shots), self.pool.embeddings_ND, mode="mean")
            entries = torch.cat(self._parts(rows_GD), dim=1)
        elif shots == 1:
            entries = take(self.table_GZ, places.squeeze(1))  # a mean of one would cost three times as much
        else:
            entries = F.embedding_bag(places, self.table_GZ, mode="mean")
        entries = entries.view(tasks, ways, -1)
        rows, *blocks, more = entries.split(self.widths, dim=-1)
        queries, values, scores = (block.unflatten(-1, (self.heads, -1)).transpose(1, 2) for block in blocks)
        return Prototypes(rows, queries, values, scores, more)

    def classifiers(self, prototypes: Prototypes, skip: int = 0) -> Tensor:
        """Classifiers (T×W×D, not normalised) from prototypes, the context after its first `skip` rows, each other."""
        own_THWW = prototypes.queries_THWD @ prototypes.rows_TWD.mT.unsqueeze(1)
        context_THWF = prototypes.scores_THWF[..., skip:]
        alpha = torch.cat([context_THWF, own_THWW], dim=-1).softmax(dim=-1)
        context_alpha, own_alpha = alpha.split([context_THWF.shape[-1], own_THWW.shape[-1]], dim=-1)
        from_context = torch.einsum("thwf,hfd->twd", context_alpha, self.context_values_HFD[:, skip:])
        return prototypes.rows_TWD + from_context + (own_alpha @ prototypes.values_THWD).sum(dim=1)


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
        return products(self.pool, tasks.queries_TQ, rows_TWD / (lengths(rows_TWD) * self.temperature)).mT

    def __call__(self, tasks: TaskBatch) -> Scores:
        return Scores(self.best_N[tasks.queries_TQ], self.label_N[tasks.queries_TQ], self.unseen_logits(tasks))


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
        fixed_DZ = torch.cat([theta_SD, mix_SD]).T
        self.fixed_NZ = pool.embeddings_ND @ fixed_DZ
        self.theta_theta_S = theta_SD.square().sum(dim=1)
        self.theta_mix_S = (theta_SD * mix_SD).sum(dim=1)
        self.mix_mix_S = mix_SD.square().sum(dim=1)
        self.projected = ProjectedPool(
            dictionary, pool, self.seen_classes, context_FD, of_rows_ZD=theta_queries_SD, of_values_ZD=fixed_DZ.T
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

    def _pieces(self, tasks: TaskBatch) -> Iterator[tuple[Tensor, Tensor]]:
        """Seen and unseen logits (T×Q×S, T×Q×W), some tasks at a time."""
        prototypes = self.projected.prototypes(tasks.support_TWK)
        rows_TWD = self.projected.classifiers(prototypes)
        unit_TWD = rows_TWD / (lengths(rows_TWD) * self.temperature)
        columns_TZD = torch.cat([unit_TWD, prototypes.values_THWD[:, 0]], dim=1)
        a_T1S, beta_TWS, length_T1S = self._seen_shares(prototypes)
        scale_T1S = length_T1S * self.temperature
        for piece in in_pieces(self.pool, tasks.queries_TQ):
            queries_TQ = tasks.queries_TQ[piece]
            products_TZQ = columns_TZD[piece] @ take(self.pool.embeddings_ND, queries_TQ).mT
            unseen_TWQ, of_values_TWQ = products_TZQ.chunk(2, dim=1)
            of_theta_TQS, of_mix_TQS = take(self.fixed_NZ, queries_TQ).chunk(2, dim=-1)
            fixed_TQS = torch.addcmul(of_theta_TQS, of_mix_TQS, a_T1S[piece])
            seen_TQS = fixed_TQS.baddbmm_(of_values_TWQ.mT, beta_TWS[piece])
            yield seen_TQS.div_(scale_T1S[piece]), unseen_TWQ.mT

    def __call__(self, tasks: TaskBatch) -> Scores:
        pieces = [(*seen_TQS.max(dim=-1), unseen_TQW, seen_TQS) for seen_TQS, unseen_TQW in self._pieces(tasks)]
        return Scores(*(torch.cat(parts) for parts in zip(*pieces, strict=True)))

    def seen_logits(self, tasks: TaskBatch) -> Tensor:
        return torch.cat([seen_TQS for seen_TQS, _ in self._pieces(tasks)])

    def unseen_logits(self, tasks: TaskBatch) -> Tensor:
        """Few-shot use: the many-shot classifiers are left out of the context."""
        rows_TWD = self.projected.classifiers(self.projected.prototypes(tasks.support_TWK), self.seen_classes)
        return products(self.pool, tasks.queries_TQ, rows_TWD / (lengths(rows_TWD) * self.few_shot_temperature)).mT
