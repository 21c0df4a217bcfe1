"""Eq. 7 of the paper for classifiers of which each task swaps a few: the loss that CASTLE and CASTLE⁻ share.

Beside it the few-shot objective, in which a task's classifiers meet each other only.
Dimensions: T tasks, W ways, C classes of the batch, Q queries of a class, B queries, S seen classes.
"""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


def swapped_cross_entropy(
    seen_BS: Tensor, new_TWB: Tensor, tasks_TW: Tensor, classes_C: Tensor, labels_B: Tensor
) -> Tensor:
    """Cross-entropy of B queries under T joint classifiers, of which only W logits differ from the seen ones.

    `seen_BS` are the many-shot logits, `new_TWB` the synthesised ones; `tasks_TW` are positions in `classes_C`, the
    labels of the batch's classes. Classes outside the batch keep their logits in every task, so their part of the
    log-sum-exp is taken once.
    """
    tasks, ways, queries = new_TWB.shape
    classes, seen_classes = len(classes_C), seen_BS.shape[1]
    place_S = classes_C.new_full((seen_classes,), -1).index_copy(0, classes_C, torch.arange(classes).to(classes_C))
    outside_B = seen_BS[:, place_S < 0].logsumexp(dim=1)
    # The batch's classes, once per task, with the task's own columns overwritten.
    firsts_T1 = torch.arange(0, tasks * classes, classes).to(tasks_TW).unsqueeze(1)
    inside = seen_BS.T.index_select(0, classes_C).repeat(tasks, 1)
    inside_TCB = inside.index_copy(0, (firsts_T1 + tasks_TW).flatten(), new_TWB.flatten(0, 1)).view(tasks, classes, -1)
    total_TB = torch.logaddexp(inside_TCB.logsumexp(dim=1), outside_B)
    place_B = place_S[labels_B]
    inside_target_TB = inside_TCB.gather(1, place_B.clamp(min=0).expand(tasks, 1, queries)).squeeze(1)
    outside_target_B = seen_BS.gather(1, labels_B.unsqueeze(1)).squeeze(1)
    return (total_TB - torch.where(place_B < 0, outside_target_B, inside_target_TB)).mean()


def own_cross_entropy(new_TWB: Tensor, tasks_TW: Tensor, classes: int) -> Tensor:
    """Cross-entropy of every task's own queries under its W new classifiers; the B queries come class by class."""
    new_TWCQ = new_TWB.unflatten(2, (classes, -1))
    ways, per_class = tasks_TW.shape[1], new_TWCQ.shape[3]
    own_TWWQ = new_TWCQ.gather(2, tasks_TW[:, None, :, None].expand(-1, ways, -1, per_class))
    targets_W1 = torch.arange(ways).to(tasks_TW).unsqueeze(1)
    return cross_entropy(own_TWWQ, targets_W1.expand(len(tasks_TW), ways, per_class))
