"""The seen-unseen curve of a task and the area under it (AUSUC), exact, for many tasks at once.

Raising the bias β past a query's margin turns that query from seen to unseen. Sorting the margins therefore visits
every point of the curve: it begins at (0, S→S) where all queries are called seen, and ends at (U→U, 0). Queries with
the same margin turn together. Accuracies are class-balanced over the classes that occur in the task.

Dimensions: T tasks, Q queries, P = Q + 1 points of a curve, G points of a plotted curve, C classes.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from repro.evaluation.metrics import Outcome


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


def curve(result: Outcome, seen_weights_TQ: Tensor, unseen_weights_TQ: Tensor) -> Curve:
    """The points of every task's curve."""
    right_seen_TQ, right_unseen_TQ = result.parts(result.right_TQ)
    seen_TQ, unseen_TQ = right_seen_TQ * seen_weights_TQ, right_unseen_TQ * unseen_weights_TQ
    margin_TQ, order_TQ = result.margin_TQ.sort(dim=1)
    lost_TQ = torch.cat([seen_TQ, torch.zeros_like(unseen_TQ)], dim=1).gather(1, order_TQ).cumsum(dim=1)
    won_TQ = torch.cat([torch.zeros_like(seen_TQ), unseen_TQ], dim=1).gather(1, order_TQ).cumsum(dim=1)
    # Only the last of several equal margins is a point; the others repeat the point before them.
    tied_TQ = margin_TQ[:, :-1] == margin_TQ[:, 1:]
    for gained_TQ in (lost_TQ, won_TQ):
        gained_TQ[:, :-1].masked_fill_(tied_TQ, 0.0)
    lost_TQ, won_TQ = lost_TQ.cummax(dim=1).values, won_TQ.cummax(dim=1).values
    start_T1 = torch.zeros_like(lost_TQ[:, :1])
    all_seen_T1 = seen_TQ.sum(dim=1, keepdim=True)
    return Curve(torch.cat([start_T1, won_TQ], dim=1), all_seen_T1 - torch.cat([start_T1, lost_TQ], dim=1))


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
