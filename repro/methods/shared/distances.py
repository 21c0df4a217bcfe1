"""Class means, distances and the two frozen-weight helpers that several comparison methods share.

Dimensions as in `base.py`.
"""

from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

Module = TypeVar("Module", bound=nn.Module)


def prototypes(support_TWKD: Tensor) -> Tensor:
    """Average the shots of every class (T×W×D)."""
    return support_TWKD.mean(dim=2)


def squared_distances(queries_TQD: Tensor, centres_TWD: Tensor) -> Tensor:
    """Give ‖q − c‖² for all pairs (T×Q×W); also without the leading dimension (Q×D, W×D → Q×W)."""
    products_TQW = queries_TQD @ centres_TWD.transpose(-1, -2)
    query_norms_TQ1 = queries_TQD.square().sum(dim=-1, keepdim=True)
    centre_norms_T1W = centres_TWD.square().sum(dim=-1).unsqueeze(-2)
    return query_norms_TQ1 - 2 * products_TQW + centre_norms_T1W


def prototypical_loss(support_TCKD: Tensor, query_TCQD: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of every query against its own task's class means (Snell et al. 2017), over all tasks."""
    tasks, classes, queries, _ = query_TCQD.shape
    distances_TQC = squared_distances(query_TCQD.flatten(1, 2), prototypes(support_TCKD))
    targets_Q = torch.arange(classes, device=query_TCQD.device).repeat_interleave(queries)
    return cross_entropy(-distances_TQC.flatten(0, 1) / temperature, targets_Q.repeat(tasks))


def scaled_like(seen_weight_SD: Tensor, prototypes_TWD: Tensor) -> Tensor:
    """Turn prototypes into linear classifiers as long as the seen ones are on average, so that logits compare."""
    return normalize(prototypes_TWD, dim=-1) * seen_weight_SD.norm(dim=-1).mean()


def frozen(module: Module) -> Module:
    """Give the module with every parameter out of training's reach."""
    return module.requires_grad_(False)


def seen_weight(seen_classes: int, dim: int, *, trained: bool) -> nn.Parameter:
    """A seen classifier (S×D) that awaits `load_pretrained`."""
    return nn.Parameter(torch.randn(seen_classes, dim) / dim**0.5, requires_grad=trained)
