"""MAP-based harmonic mean, as the released code defines it, for many tasks at once.

Every class is a retrieval problem: rank the queries by the class's logit. The average precision of a class is the mean
over its own queries of (own queries ranked as high or higher) / (all queries ranked as high or higher). Seen queries
and unseen queries are ranked apart. The mean is over all |S| + W classes; one without a query counts as 0, so the
unseen value cannot exceed W / (|S| + W).

Counting comparisons replaces sorting: a query is compared in its own class's column only.

Dimensions: T tasks, S seen classes, W ways, A seen queries, B unseen queries (I, J when two run at once).
"""

import torch
from torch import Tensor

from repro.evaluation.metrics import harmonic

COMPARISONS = 2**18  # pairs of queries compared at once: what stays in a processor's cache


def map_measures(seen_TAS: Tensor, unseen_TBW: Tensor, seen_labels_TA: Tensor, ways_TB: Tensor) -> dict[str, Tensor]:
    """MAP of seen and unseen queries and their harmonic mean per task, in percent.

    `seen_TAS` are the seen logits of the seen queries, `unseen_TBW` the unseen logits of the unseen queries.
    """
    columns = seen_TAS.shape[2] + unseen_TBW.shape[2]
    seen = _summed_precision(seen_TAS, seen_labels_TA) / columns
    unseen = _summed_precision(unseen_TBW, ways_TB) / columns
    return {"map_s": 100 * seen, "map_u": 100 * unseen, "map_hm": 100 * harmonic(seen, unseen)}


def _summed_precision(logits_TAC: Tensor, labels_TA: Tensor) -> Tensor:
    """Average precision summed over the classes that occur, as many tasks at once as `COMPARISONS` allows."""
    size = max(1, COMPARISONS // labels_TA.shape[1] ** 2)
    parts = zip(logits_TAC.split(size), labels_TA.split(size), strict=True)
    return torch.cat([_summed_precision_at_once(logits, labels) for logits, labels in parts])


def _summed_precision_at_once(logits_TAC: Tensor, labels_TA: Tensor) -> Tensor:
    tasks, queries, classes = logits_TAC.shape
    columns = logits_TAC.transpose(1, 2).reshape(tasks * classes, queries)
    first_T1 = torch.arange(0, tasks * classes, classes, device=labels_TA.device)[:, None]
    # Entry (i, j): query j's logit for the class of query i.
    rows_TIJ = columns.index_select(0, (first_T1 + labels_TA).flatten()).view(tasks, queries, queries)
    own_TI = rows_TIJ.diagonal(dim1=1, dim2=2).clone()
    # Zeros and ones stay in the logits' own float type: summing booleans is several times slower, and counts are exact.
    above_TIJ = rows_TIJ.ge_(own_TI[:, :, None])
    same_TIJ = (labels_TA[:, :, None] == labels_TA[:, None, :]).to(above_TIJ.dtype)
    ranked_TI, of_class_TI = above_TIJ.sum(dim=2).double(), same_TIJ.sum(dim=2).double()
    relevant_TI = above_TIJ.mul_(same_TIJ).sum(dim=2).double()
    return (relevant_TI / (ranked_TI * of_class_TI)).sum(dim=1)
