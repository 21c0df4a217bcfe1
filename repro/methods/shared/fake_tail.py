"""Training on seen classes that play the unseen ones: a task's few classes trade their classifiers for composed ones.

Dimensions as in `base.py`; a training task has C fake-unseen classes among the S seen ones.
"""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from repro.methods.base import EmbeddedBatch


def joint_queries(batch: EmbeddedBatch) -> tuple[Tensor, Tensor]:
    """Give every task its own queries and the shared free images: features T×(C·Q+B)×D and seen labels T×(C·Q+B)."""
    tasks, _, queries, _ = batch.query_TCQD.shape
    free_TBD = batch.free_BD.expand(tasks, -1, -1)
    labels_TB = batch.free_labels_B.expand(tasks, -1)
    own_labels_TN = batch.labels_TC.repeat_interleave(queries, dim=1)
    return torch.cat([batch.query_TCQD.flatten(1, 2), free_TBD], dim=1), torch.cat([own_labels_TN, labels_TB], dim=1)


def hidden_classes(labels_TC: Tensor, seen_classes: int) -> Tensor:
    """Mark the seen classes that a task pretends not to know (T×S, boolean)."""
    hidden_TS = torch.zeros(len(labels_TC), seen_classes, dtype=torch.bool, device=labels_TC.device)
    return hidden_TS.scatter(1, labels_TC, True)


def fake_tail_loss(seen_TQS: Tensor, tail_TQC: Tensor, labels_TC: Tensor, targets_TQ: Tensor) -> Tensor:
    """Cross-entropy over all seen classes after the fake-unseen ones took their composed classifier's logits."""
    columns_TQC = labels_TC.unsqueeze(1).expand(-1, seen_TQS.shape[1], -1)
    joint_TQS = seen_TQS.scatter(2, columns_TQC, tail_TQC.to(seen_TQS.dtype))
    return cross_entropy(joint_TQS.flatten(0, 1), targets_TQ.flatten())
