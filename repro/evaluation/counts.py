"""How often every image was right, and every class was taken for another, over all tasks of one way.

Counts are whole numbers: they depend neither on the order of the tasks nor on threads and memory. What is asked of a
class is a sum over its images.

Dimensions as in `repro.methods.base`, and: A seen queries of a task, C classes of a dataset, O outcomes of a query.
"""

from threading import Lock

import numpy as np
import torch
from torch import Tensor

from repro.evaluation.bound import BoundTasks
from repro.evaluation.metrics import QueryOutcomes, called_rightly
from repro.methods.base import Scores, TaskBatch, take

# In which label sets a query was right, as a sum: its own, the joint one, the joint one after calibration.
RIGHT = {"own": 4, "joint": 2, "calibrated": 1}
OUTCOMES = 8


class Counts:
    """Counts over the tasks of one way: of outcomes by image, and of predicted by true class in the joint label set."""

    def __init__(self, bound: BoundTasks) -> None:
        self._bound, self._lock = bound, Lock()
        self._classes = int(bound.pool.labels_N.max()) + 1
        self._images_NO = torch.zeros(len(bound.rows_N), OUTCOMES, dtype=torch.int64, device=bound.device)
        self._taken_CC = torch.zeros(self._classes, self._classes, dtype=torch.int64, device=bound.device)

    def add(self, batch: TaskBatch, scores: Scores, result: QueryOutcomes, bias: float, tasks: int) -> None:
        """Count the queries of the first `tasks` of a block; several threads may add at once."""
        classes_TW = take(self._bound.pool.labels_N, batch.support_TWK[..., 0])
        seen_TA, _ = result.parts(result.labels_TQ)
        truth_TQ = torch.cat([seen_TA, classes_TW.repeat_interleave(self._bound.spec.query, dim=1)], dim=1)
        unseen_TQ = classes_TW.gather(1, scores.best_unseen.indices)
        predicted_TQ = torch.where(result.margin_TQ >= 0, scores.seen_label_TQ, unseen_TQ)
        right = {"own": result.right_TQ, "joint": predicted_TQ == truth_TQ}
        right["calibrated"] = result.right_TQ & called_rightly(result, bias)
        image_TQ = OUTCOMES * batch.queries_TQ
        for name, right_TQ in right.items():
            image_TQ.add_(right_TQ, alpha=RIGHT[name])
        taken_TQ = truth_TQ.mul_(self._classes).add_(predicted_TQ)
        with self._lock:
            _count(self._images_NO, image_TQ[:tasks])
            _count(self._taken_CC, taken_TQ[:tasks])

    def images(self) -> dict[str, np.ndarray]:
        """A row for every image that was a query, named by its row in the dataset: its label, how often it was asked
        for, and how often it was right in each label set."""
        counted_NO = self._images_NO.cpu().numpy()
        asked_N = counted_NO.sum(axis=1)
        labels_N = self._bound.pool.labels_N.cpu().numpy()
        columns = {"image": self._bound.rows_N.numpy(), "label": labels_N, "asked": asked_N}
        for name, bit in RIGHT.items():
            columns[name] = counted_NO[:, (np.arange(OUTCOMES) & bit) > 0].sum(axis=1)
        return {name: values[asked_N > 0].astype(np.int32) for name, values in columns.items()}

    def confusions(self) -> dict[str, np.ndarray]:
        """A row for every true class and every class that it was taken for, itself included, and how often."""
        truth, predicted = self._taken_CC.nonzero(as_tuple=True)
        columns = {"truth": truth, "predicted": predicted, "count": self._taken_CC[truth, predicted]}
        return {name: values.cpu().numpy().astype(np.int32) for name, values in columns.items()}


def _count(counted: Tensor, place_TQ: Tensor) -> None:
    place_R = place_TQ.flatten()
    counted.view(-1).scatter_add_(0, place_R, torch.ones_like(place_R))
