"""The neural dictionary (§3.2 of the paper): learned bases, and the projections that score rows and give them values.

A row is anything that attends or is attended to: a prototype, a many-shot classifier, a base. `attend` is the
synthesis itself; a caller that attends many times over the same rows computes `queries` and `values` once. The key
projection is applied on the query's side (pᵀU · b instead of p · Ub): few rows attend, many are attended to.

Dimensions: R rows, M shared bases, D features, H heads, E features per head, … any leading dimensions.
"""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from repro.errors import BadInput


class NeuralDictionary(nn.Module, ABC):
    """Bases and projections; the forms differ in how rows become queries and values."""

    bases_MD: nn.Parameter
    heads: int = 1
    attention_dropout: float = 0.0

    def __init__(self, dim: int, bases: int, bases_std: float | None) -> None:
        super().__init__()
        # The fan-in that He initialisation sees in a 1×M×D tensor is M·D: bases start small, attention even.
        std = math.sqrt(2 / (bases * dim)) if bases_std is None else bases_std
        self.bases_MD = nn.Parameter(torch.randn(bases, dim) * std)

    @abstractmethod
    def queries(self, rows_RD: Tensor) -> Tensor:
        """(…×R×D) → (…×H×R×D): a row's score on any other row is the product of its query with that row."""

    @abstractmethod
    def values(self, rows_RD: Tensor) -> Tensor:
        """(…×R×D) → (…×H×R×D): what a row adds to a classifier per unit of attention, output projection included."""

    def attend(self, rows_RD: Tensor) -> Tensor:
        """Synthesise a classifier from every row (…×R×D): the row plus attention over all rows and the bases.

        Eq. for α and W_c, without the final normalisation and without dropout.
        """
        queries = self.queries(rows_RD)
        scores = torch.cat([queries @ rows_RD.mT.unsqueeze(-3), queries @ self.bases_MD.T], dim=-1)
        own, base = scores.softmax(dim=-1).split([rows_RD.shape[-2], len(self.bases_MD)], dim=-1)
        # einsum folds the leading dimensions into one product where a broadcast matmul would copy the bases.
        from_bases = torch.einsum("...hrm,hmd->...rd", base, self.values(self.bases_MD))
        return rows_RD + from_bases + (own @ self.values(rows_RD)).sum(dim=-3)


class PaperDictionary(NeuralDictionary):
    """The paper's form: scores pᵀUb, values Vb, one head, no bias.

    `score_scale` divides the scores; √D unless given. U is learned, so it absorbs any scale: this decides where
    training starts, not what can be learned.
    """

    def __init__(
        self,
        dim: int,
        bases: int,
        heads: int = 1,
        score_scale: float | None = None,
        bases_std: float | None = None,
    ) -> None:
        if heads != 1:
            raise BadInput(f'the paper\'s dictionary has one head, {heads} were asked for: use dictionary: "released"')
        super().__init__(dim, bases, bases_std)
        self.score_scale = score_scale or math.sqrt(dim)
        self.key = nn.Linear(dim, dim, bias=False)  # U
        self.value = nn.Linear(dim, dim, bias=False)  # V
        for projection in (self.key, self.value):
            nn.init.xavier_normal_(projection.weight)

    def queries(self, rows_RD: Tensor) -> Tensor:
        """See `NeuralDictionary.queries`."""
        return (rows_RD @ self.key.weight / self.score_scale).unsqueeze(-3)

    def values(self, rows_RD: Tensor) -> Tensor:
        """See `NeuralDictionary.values`."""
        return self.value(rows_RD).unsqueeze(-3)


class ReleasedDictionary(NeuralDictionary):
    """The released code's form: query, key, value and output projections, several heads, scores over √E.

    Its attention dropout is fixed at 0.1 there, whatever rate is asked for. The projections keep the released names.
    """

    attention_dropout = 0.1

    def __init__(
        self,
        dim: int,
        bases: int,
        heads: int = 1,
        score_scale: float | None = None,
        bases_std: float | None = None,
    ) -> None:
        if heads < 1 or dim % heads:
            raise BadInput(f"{heads} heads do not divide {dim} features: choose a divisor")
        super().__init__(dim, bases, bases_std)
        self.heads = heads
        per_head = dim // heads
        self.score_scale = score_scale or math.sqrt(per_head)
        self.w_qs = nn.Linear(dim, dim, bias=False)
        self.w_ks = nn.Linear(dim, dim, bias=False)
        self.w_vs = nn.Linear(dim, dim, bias=False)
        self.fc = nn.Linear(dim, dim, bias=False)
        for projection in (self.w_qs, self.w_ks, self.w_vs):
            nn.init.normal_(projection.weight, std=math.sqrt(2 / (dim + per_head)))
        nn.init.xavier_normal_(self.fc.weight)

    def _split(self, projected: Tensor) -> Tensor:
        return projected.unflatten(-1, (self.heads, -1)).transpose(-2, -3)

    def queries(self, rows_RD: Tensor) -> Tensor:
        """See `NeuralDictionary.queries`."""
        keys_HED = self.w_ks.weight.unflatten(0, (self.heads, -1))
        return self._split(self.w_qs(rows_RD) / self.score_scale) @ keys_HED

    def values(self, rows_RD: Tensor) -> Tensor:
        """See `NeuralDictionary.values`. Heads are blocks of columns, in the output projection too."""
        output_HED = self.fc.weight.T.unflatten(0, (self.heads, -1))
        return self._split(self.w_vs(rows_RD)) @ output_HED


FORMS: dict[str, type[PaperDictionary] | type[ReleasedDictionary]] = {
    "paper": PaperDictionary,
    "released": ReleasedDictionary,
}


def create_dictionary(
    form: str, dim: int, bases: int, heads: int, score_scale: float | None, bases_std: float | None = None
) -> NeuralDictionary:
    """Build a dictionary of the named form with `bases` shared bases, drawn with `bases_std` (None: very small)."""
    if form not in FORMS:
        raise BadInput(f"unknown dictionary {form!r}; expected one of {', '.join(FORMS)}")
    return FORMS[form](dim, bases, heads, score_scale, bases_std)
