"""Classifier synthesis as CASTLE and aCASTLE share it: from support embeddings to classifiers, for one or many tasks.

Dimensions as in `base`, and: V views of a support set (1 where embeddings are averaged first, K where classifiers
are averaged afterwards), N rows of a task (its prototypes, and the seen classifiers in aCASTLE), R rows shared by all
tasks of a step, Y = R + bases, H heads.
"""

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from repro.errors import BadInput
from repro.models.neural_dictionary import create_dictionary

Average = Literal["pre", "post"]
LENGTH_FLOOR = 1e-12  # a zero classifier stays zero instead of becoming NaN


def drop(x: Tensor, rate: float, noise: torch.Generator | None) -> Tensor:
    """Inverted dropout with an explicit generator; without one (evaluation) nothing is dropped."""
    if noise is None or rate == 0:
        return x
    return x * torch.empty_like(x).bernoulli_(1 - rate, generator=noise).div_(1 - rate)


def noise_source(generator: torch.Generator, device: torch.device) -> torch.Generator:
    """A generator on `device`, seeded by one draw: masks are made where they are needed, and stay reproducible."""
    seed = torch.randint(2**62, (), generator=generator).item()
    return torch.Generator(device).manual_seed(int(seed))


def draw_class_sets(classes: int, tasks: int, ways: int, generator: torch.Generator) -> Tensor:
    """Random tasks of `ways` distinct classes of a batch, as positions 0 … classes − 1 (T×W; all where fewer)."""
    return torch.rand(tasks, classes, generator=generator).argsort(dim=1)[:, :ways]


def lengths(rows_TND: Tensor) -> Tensor:
    """The ℓ2 length of every row (T×N×1), kept from zero."""
    return rows_TND.norm(dim=-1, keepdim=True).clamp_min(LENGTH_FLOOR)


class SharedRows(NamedTuple):
    """Rows that many tasks of one step choose from, with every pair's attention score computed once."""

    rows_RD: Tensor
    scores_HRY: Tensor
    values_HYD: Tensor


class Synthesis(nn.Module):
    """The neural dictionary in use. Without bases (ratio 0) there is none, and a row is its own classifier (§5.4)."""

    def __init__(
        self,
        dim: int,
        seen_classes: int,
        *,
        dictionary: str,
        ratio: float,
        heads: int,
        score_scale: float | None,
        bases_std: float | None,
        dropout: float,
        average: Average,
    ) -> None:
        super().__init__()
        if average not in ("pre", "post"):
            raise BadInput(f"unknown average {average!r}; expected pre (embeddings) or post (classifiers)")
        if ratio < 0 or not 0 <= dropout < 1:
            raise BadInput(f"ratio {ratio} and dropout {dropout} given; expected ratio ≥ 0 and 0 ≤ dropout < 1")
        bases = round(ratio * seen_classes)
        built = create_dictionary(dictionary, dim, bases, heads, score_scale, bases_std) if bases else None
        self.dictionary = built
        self.dropout = dropout
        self.average = average

    def views(self, support_WKD: Tensor) -> Tensor:
        """Support embeddings (…×W×K×D) as rows to synthesise from (…×V×W×D)."""
        if self.average == "pre":
            return support_WKD.mean(dim=-2).unsqueeze(-3)
        return support_WKD.transpose(-2, -3)

    def classifiers(self, rows_TVND: Tensor) -> Tensor:
        """Unit-length classifiers (T×N×D) of tasks that share nothing but the bases."""
        rows_TVND = rows_TVND if self.dictionary is None else self.dictionary.attend(rows_TVND)
        rows_TND = rows_TVND.mean(dim=1)
        return rows_TND / lengths(rows_TND)

    def share(self, rows_RD: Tensor) -> SharedRows:
        """Project the rows and score all pairs, rows against rows and bases."""
        if self.dictionary is None:
            nothing = rows_RD.new_zeros(0, len(rows_RD), 0)
            return SharedRows(rows_RD, nothing, nothing)
        members_YD = torch.cat([rows_RD, self.dictionary.bases_MD])
        scores_HRY = self.dictionary.queries(rows_RD) @ members_YD.T
        return SharedRows(rows_RD, scores_HRY, self.dictionary.values(members_YD))

    def mix(self, shared: SharedRows, chosen_TVN: Tensor, noise: torch.Generator | None) -> Tensor:
        """Classifiers (T×N×D, not normalised) of tasks that each consist of the chosen rows and the bases.

        A task's rows attend to each other: scores of rows that it did not choose are masked, none is recomputed.
        """
        own_ND = shared.rows_RD.index_select(0, chosen_TVN.flatten())
        if self.dictionary is not None:
            tasks, views, rows = chosen_TVN.shape
            blocked_TVY = own_ND.new_zeros(tasks, views, shared.values_HYD.shape[1])
            blocked_TVY[..., : len(shared.rows_RD)] = -torch.inf
            blocked_TVY.scatter_(2, chosen_TVN, 0)
            scores_HTVNY = shared.scores_HRY.index_select(1, chosen_TVN.flatten()).unflatten(1, (tasks, views, rows))
            alpha_HTVNY = (scores_HTVNY + blocked_TVY.unsqueeze(2)).softmax(dim=-1)
            alpha_HNY = drop(alpha_HTVNY.flatten(1, 3), self.dictionary.attention_dropout, noise)
            mixed_ND = torch.einsum("hny,hyd->nd", alpha_HNY, shared.values_HYD)
            own_ND = own_ND + drop(mixed_ND, self.dropout, noise)
        rows_TVND = own_ND.unflatten(0, chosen_TVN.shape)
        return rows_TVND.squeeze(1) if rows_TVND.shape[1] == 1 else rows_TVND.mean(dim=1)

    def parameter_groups(self, backbone: nn.Module, seen_SD: nn.Parameter, lr_scale: float) -> list[dict[str, Any]]:
        """Optimiser groups: backbone, dictionary (its rate × `lr_scale`), and the seen classifier where it learns."""
        groups = [
            {"name": "backbone", "params": list(backbone.parameters()), "lr_scale": 1.0},
            {"name": "dictionary", "params": list(self.parameters()), "lr_scale": lr_scale},
            {"name": "seen_classifier", "params": [seen_SD] if seen_SD.requires_grad else [], "lr_scale": 1.0},
        ]
        return [group for group in groups if group["params"]]
