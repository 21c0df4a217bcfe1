"""The neural dictionary against the equations written out with loops."""

import math

import pytest
import torch
from torch import Tensor

from repro.errors import BadInput
from repro.models.neural_dictionary import NeuralDictionary, PaperDictionary, ReleasedDictionary, create_dictionary

DIM, BASES, ROWS = 6, 5, 4


def build(form: str, heads: int = 1, score_scale: float | None = None) -> NeuralDictionary:
    torch.manual_seed(0)
    dictionary = create_dictionary(form, DIM, BASES, heads, score_scale).double()
    with torch.no_grad():
        dictionary.bases_MD.normal_()
    return dictionary


def rows(*lead: int) -> Tensor:
    return torch.randn(*lead, ROWS, DIM, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@torch.no_grad()
def test_the_paper_form_is_the_papers_equation() -> None:
    dictionary, rows_RD = build("paper", score_scale=2.0), rows()
    assert isinstance(dictionary, PaperDictionary)
    U, V = dictionary.key.weight, dictionary.value.weight
    members = [*rows_RD, *dictionary.bases_MD]
    expected = []
    for p in rows_RD:
        weights = [math.exp(float(p @ U @ b) / 2.0) for b in members]
        expected.append(p + sum(w * (V @ b) for w, b in zip(weights, members, strict=True)) / sum(weights))
    torch.testing.assert_close(dictionary.attend(rows_RD), torch.stack(expected))


@torch.no_grad()
def test_heads_are_blocks_of_columns() -> None:
    dictionary, rows_RD = build("released", heads=2), rows()
    assert isinstance(dictionary, ReleasedDictionary)
    members_YD = torch.cat([rows_RD, dictionary.bases_MD])
    blocks = []
    for columns in (slice(0, 3), slice(3, 6)):
        queries = (rows_RD @ dictionary.w_qs.weight.T)[:, columns]
        keys = (members_YD @ dictionary.w_ks.weight.T)[:, columns]
        values = (members_YD @ dictionary.w_vs.weight.T)[:, columns]
        blocks.append((queries @ keys.T / math.sqrt(3)).softmax(dim=1) @ values)
    expected = rows_RD + torch.cat(blocks, dim=1) @ dictionary.fc.weight.T
    torch.testing.assert_close(dictionary.attend(rows_RD), expected)


@torch.no_grad()
def test_one_released_head_is_the_paper_form_with_folded_projections() -> None:
    released, paper = build("released"), build("paper", score_scale=math.sqrt(DIM))
    assert isinstance(released, ReleasedDictionary) and isinstance(paper, PaperDictionary)
    paper.bases_MD.copy_(released.bases_MD)
    paper.key.weight.copy_(released.w_qs.weight.T @ released.w_ks.weight)
    paper.value.weight.copy_(released.fc.weight @ released.w_vs.weight)
    torch.testing.assert_close(paper.attend(rows()), released.attend(rows()))


@torch.no_grad()
@pytest.mark.parametrize(("form", "heads"), [("paper", 1), ("released", 1), ("released", 3)])
def test_leading_dimensions_are_independent_tasks(form: str, heads: int) -> None:
    dictionary, rows_TVRD = build(form, heads), rows(3, 2)
    together = dictionary.attend(rows_TVRD)
    for task in range(3):
        for view in range(2):
            torch.testing.assert_close(together[task, view], dictionary.attend(rows_TVRD[task, view]))


def test_what_cannot_be_built_is_refused() -> None:
    with pytest.raises(BadInput, match="unknown dictionary 'published'; expected one of paper, released"):
        create_dictionary("published", DIM, BASES, 1, None)
    with pytest.raises(BadInput, match="one head"):
        create_dictionary("paper", DIM, BASES, 2, None)
    with pytest.raises(BadInput, match="4 heads do not divide 6 features"):
        create_dictionary("released", DIM, BASES, 4, None)
