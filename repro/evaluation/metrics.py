"""Measures of a generalised few-shot task, for many tasks at once.

Whether a query is right in S ∪ U depends on two things alone: whether its own label set would be classified rightly,
and its margin, the largest seen minus the largest unseen logit. Subtracting a bias β from the seen logits leaves the
first as it is and calls a query seen where margin ≥ β (a tie goes to the seen class, which comes first).

Dimensions: T tasks, Q queries of a task (seen queries first, then unseen ones), S seen classes, W ways.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from repro.methods.base import Scores

SMALLEST_CONFIDENCE = 1e-6  # keeps the ratio of two confidences finite


@dataclass(frozen=True)
class QueryOutcomes:
    """What the scores of each query come to. `labels_TQ` counts seen classes from 0 and a task's ways from S."""

    margin_TQ: Tensor
    right_TQ: Tensor
    labels_TQ: Tensor
    seen_queries: int

    def parts(self, values_TQ: Tensor) -> tuple[Tensor, Tensor]:
        """Split values by query into those of seen and of unseen queries."""
        return values_TQ[:, : self.seen_queries], values_TQ[:, self.seen_queries :]


def outcome(scores: Scores, labels_TQ: Tensor, seen_queries: int, seen_classes: int) -> QueryOutcomes:
    """Reduce joint scores to margins and rightness; among equal logits the first class wins."""
    best_TQ, way_TQ = scores.best_unseen
    seen = torch.arange(labels_TQ.shape[1], device=labels_TQ.device) < seen_queries
    predicted_TQ = torch.where(seen, scores.seen_label_TQ, way_TQ + seen_classes)
    return QueryOutcomes(scores.best_seen_TQ - best_TQ, predicted_TQ == labels_TQ, labels_TQ, seen_queries)


def own_accuracies(result: QueryOutcomes) -> tuple[Tensor, Tensor]:
    """S→S and U→U per task, as fractions (float64)."""
    seen_TQ, unseen_TQ = result.parts(result.right_TQ)
    return _mean(seen_TQ), _mean(unseen_TQ)


def joint_accuracies(result: QueryOutcomes, bias: float = 0.0) -> tuple[Tensor, Tensor]:
    """S→S∪U and U→S∪U per task with `bias` subtracted from the seen logits, as fractions (float64)."""
    seen_TQ, unseen_TQ = result.parts(result.right_TQ & called_rightly(result, bias))
    return _mean(seen_TQ), _mean(unseen_TQ)


def called_rightly(result: QueryOutcomes, bias: float) -> Tensor:
    """Whether seen queries are called seen and unseen ones unseen, with `bias` subtracted from the seen logits."""
    called_TQ = result.margin_TQ >= bias
    called_TQ[:, result.seen_queries :].logical_not_()
    return called_TQ


def harmonic(first: Tensor, second: Tensor) -> Tensor:
    """Harmonic mean, element by element; 0 where both are 0."""
    total = first + second
    return torch.where(total > 0, 2 * first * second / total.clamp_min(torch.finfo(total.dtype).tiny), 0.0)


def measures(result: QueryOutcomes, bias: float) -> dict[str, Tensor]:
    """Accuracies, harmonic mean and Δ per task, before and (`cal_`) after calibration, in percent."""
    own_seen, own_unseen = own_accuracies(result)
    named = {"s_s": own_seen, "u_u": own_unseen}
    for prefix, beta in (("", 0.0), ("cal_", bias)):
        seen, unseen = joint_accuracies(result, beta)
        share = result.seen_queries / result.margin_TQ.shape[1]
        named[f"{prefix}acc"] = share * seen + (1 - share) * unseen
        named[f"{prefix}s_su"], named[f"{prefix}u_su"] = seen, unseen
        named[f"{prefix}hm"] = harmonic(seen, unseen)
    named["delta"] = ((own_seen - named["s_su"]) + (own_unseen - named["u_su"])) / 2
    return {name: 100 * values for name, values in named.items()}


def confidences(scores: Scores, seen_queries: int) -> dict[str, Tensor]:
    """Confidence of the own label set per task, in percent: the mean over seen queries of the largest probability of a
    seen class, and over unseen queries of an unseen class, in the softmax over all |S| + W logits; and their ratio."""
    total_TQ = torch.logaddexp(scores.seen_totals(), scores.unseen_TQW.logsumexp(dim=-1))
    seen_TQ = (scores.best_seen_TQ - total_TQ)[:, :seen_queries].exp()
    unseen_TQ = (scores.best_unseen.values - total_TQ)[:, seen_queries:].exp()
    seen_T, unseen_T = _mean(seen_TQ), _mean(unseen_TQ)
    ratio_T = seen_T / unseen_T.clamp_min(SMALLEST_CONFIDENCE)
    return {"conf_seen": 100 * seen_T, "conf_unseen": 100 * unseen_T, "conf_ratio": ratio_T}


def _mean(values_TQ: Tensor) -> Tensor:
    return values_TQ.sum(dim=1, dtype=torch.float64) / values_TQ.shape[1]
