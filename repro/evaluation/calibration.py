"""The calibration bias: the β that maximises mean HM over validation tasks once it is subtracted from the seen logits.

The mean over tasks is a step function of β that can only change at a query's margin, so trying every margin is exact.
The released code tries 30 values instead.

Dimensions: T tasks, Q queries of a task, N = T·Q queries in all.
"""

import torch
from torch import Tensor

from repro.evaluation.metrics import QueryOutcomes, harmonic


def best_bias(result: QueryOutcomes) -> float:
    """The margin that, taken as bias, gives the largest mean HM; nearest to 0 among equals, 0 where HM is always 0."""
    margin_TQ, order_TQ = result.margin_TQ.sort(dim=1)
    steps_TQ = _harmonic_after_each(result, order_TQ).diff(dim=1)
    margin_N, order_N = margin_TQ.flatten().sort()
    # HM is 0 while every query is called seen; a query adds its step once β exceeds its margin.
    after_N = steps_TQ.flatten()[order_N].cumsum(dim=0) / len(margin_TQ)
    last_N = torch.ones_like(margin_N, dtype=torch.bool)
    last_N[:-1] = margin_N[:-1] < margin_N[1:]
    value, bias = after_N[last_N][:-1], margin_N[last_N][1:]
    # Sums of the same steps in another order differ in the last digits; they count as equal.
    if not len(value) or value.max() <= 1e-9:
        return 0.0
    bias = bias[value >= value.max() - 1e-9]
    return float(bias[bias.abs().argmin()])


def _harmonic_after_each(result: QueryOutcomes, order_TQ: Tensor) -> Tensor:
    """HM of each task with its first 0, 1 … Q queries (by margin) called unseen (T × Q + 1)."""
    right_seen_TQ, right_unseen_TQ = result.right_TQ.clone(), result.right_TQ.clone()
    right_seen_TQ[:, result.seen_queries :] = False
    right_unseen_TQ[:, : result.seen_queries] = False
    lost_TQ = right_seen_TQ.gather(1, order_TQ).cumsum(dim=1).to(torch.float64)
    won_TQ = right_unseen_TQ.gather(1, order_TQ).cumsum(dim=1).to(torch.float64)
    unseen_queries = order_TQ.shape[1] - result.seen_queries
    seen_TQ = (right_seen_TQ.sum(dim=1, keepdim=True) - lost_TQ) / result.seen_queries
    harmonic_TQ = harmonic(seen_TQ, won_TQ / unseen_queries)
    return torch.cat([torch.zeros_like(harmonic_TQ[:, :1]), harmonic_TQ], dim=1)
