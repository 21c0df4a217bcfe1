"""The seen-unseen curve of a task and the area under it (AUSUC), exact, for many tasks at once.

Raising the bias β past a query's margin turns that query from seen to unseen. Sorting the margins therefore visits
every point of the curve: it begins at (0, S→S) where all queries are called seen, and ends at (U→U, 0). Queries with
the same margin turn together. Accuracies are class-balanced over the classes that occur in the task.

Dimensions: T tasks, Q queries, P = Q + 1 points of a curve, G points of a plotted curve, C classes.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from repro.evaluation.metrics import QueryOutcomes

UNIT = 2.0**-40  # of an accuracy in a sum of curves; eight million tasks fit into an int64


@dataclass(frozen=True)
class Curve:
    """Points from β = −∞ on, as fractions; a point that repeats its predecessor stands for queries that tie."""

    unseen_TP: Tensor
    seen_TP: Tensor


def class_weights(labels_TQ: Tensor, first: int, classes: int) -> tuple[Tensor, Tensor]:
    """Weights that turn a sum over queries into the mean of class means, and the number of classes that occur.

    Labels are first … first + classes − 1.
    """
    label_TQ = (labels_TQ - first).long()
    counts_TC = torch.zeros(len(label_TQ), classes, dtype=torch.float64, device=label_TQ.device)
    counts_TC.scatter_add_(1, label_TQ, torch.ones_like(label_TQ, dtype=torch.float64))
    occurring_T = (counts_TC > 0).sum(dim=1, dtype=torch.float64)
    return 1 / (counts_TC.gather(1, label_TQ) * occurring_T[:, None]), occurring_T


def curve(result: QueryOutcomes, seen_weights_TQ: Tensor, unseen_weights: Tensor | float) -> Curve:
    """The points of every task's curve."""
    right_seen_TQ, right_unseen_TQ = result.parts(result.right_TQ.to(seen_weights_TQ.dtype))
    weight_TQ = torch.cat([right_seen_TQ * seen_weights_TQ, right_unseen_TQ * unseen_weights], dim=1)
    margin_TQ, order_TQ = result.margin_TQ.sort(dim=1)
    weight_TQ, of_seen_TQ = weight_TQ.gather(1, order_TQ), order_TQ < result.seen_queries
    lost_TQ = weight_TQ.masked_fill(~of_seen_TQ, 0.0).cumsum(dim=1)
    won_TQ = weight_TQ.masked_fill(of_seen_TQ, 0.0).cumsum(dim=1)
    _repeat_within_ties(margin_TQ, lost_TQ, won_TQ)
    start_T1 = torch.zeros_like(lost_TQ[:, :1])
    return Curve(torch.cat([start_T1, won_TQ], dim=1), lost_TQ[:, -1:] - torch.cat([start_T1, lost_TQ], dim=1))


def _repeat_within_ties(margin_TQ: Tensor, *gained: Tensor) -> None:
    """Only the last of several equal margins is a point: let the others repeat the point before them, in place."""
    tied_TQ = margin_TQ[:, :-1] == margin_TQ[:, 1:]
    some = torch.nonzero(tied_TQ.any(dim=1)).squeeze(1)  # few tasks have ties, and filling forward is slow
    if not len(some):
        return
    for gained_TQ in gained:
        part_TQ = gained_TQ[some]
        part_TQ[:, :-1].masked_fill_(tied_TQ[some], 0.0)
        gained_TQ[some] = part_TQ.cummax(dim=1).values


def area(points: Curve) -> Tensor:
    """Area under every task's curve by trapezoids, as a fraction."""
    return torch.trapezoid(points.seen_TP, points.unseen_TP, dim=1)


def resample(points: Curve, unseen_G: Tensor) -> Tensor:
    """Seen accuracy of every curve at these unseen accuracies (T×G), linear between points, 0 beyond the curve's end.

    The mean of these over tasks is a curve whose area is the mean AUSUC (up to the fineness of the grid).
    """
    at_TG = unseen_G.expand(len(points.unseen_TP), -1).contiguous()
    after_TG = torch.searchsorted(points.unseen_TP, at_TG)  # the first point that has reached this accuracy
    beyond_TG = after_TG == points.unseen_TP.shape[1]
    after_TG = after_TG.masked_fill(beyond_TG, 0)
    before_TG = (after_TG - 1).clamp_min(0)
    left_TG, right_TG = points.unseen_TP.gather(1, before_TG), points.unseen_TP.gather(1, after_TG)
    share_TG = torch.where(right_TG > left_TG, (at_TG - left_TG) / (right_TG - left_TG), 1.0)
    low_TG, high_TG = points.seen_TP.gather(1, before_TG), points.seen_TP.gather(1, after_TG)
    return (low_TG + share_TG * (high_TG - low_TG)).masked_fill(beyond_TG, 0.0)


def exact_sum(seen_TG: Tensor) -> Tensor:
    """The sum over tasks in units of `UNIT` (G, int64): no rounding, so the order of adding up does not matter."""
    return (seen_TG / UNIT).round().to(torch.int64).sum(dim=0)


def exact_mean(sum_G: Tensor, tasks: int) -> Tensor:
    """The mean of so many tasks from their `exact_sum`, as fractions."""
    return sum_G.double() * (UNIT / tasks)
