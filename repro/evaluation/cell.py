"""One cell of the paper's grid: a trained method measured on every protocol it is asked for, as tidy columns.

Dimensions as in `repro.methods.base`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from repro.data.dataset import Dataset
from repro.data.episodes import Tasks
from repro.evaluation.bound import MEMORY_MB, BoundTasks, TaskPool
from repro.evaluation.calibration import best_bias
from repro.evaluation.embed import Embedded
from repro.evaluation.metrics import harmonic, joint_accuracies
from repro.evaluation.protocol import Measured, Progress, few_shot, generalised, no_progress, outcomes
from repro.evaluation.seen_protocol import seen_accuracies
from repro.methods.base import Method, Scorer

CPU = torch.device("cpu")


@dataclass
class Evaluation:
    """What one cell measured, in plain values.

    `columns` holds protocol, way and task besides the measures, a row per protocol, way and task; a measure that a
    protocol does not have is NaN. `tasks`, `biases` and `curves` are by protocol and way: the name of the task list,
    the calibration bias, and the mean seen-unseen curve (unseen, seen) in percent. `images` and `confusions` are the
    counts of the joint protocol as columns (see `Counts`), with the way.
    """

    columns: dict[str, np.ndarray] = field(default_factory=dict)
    tasks: dict[tuple[str, int], str] = field(default_factory=dict)
    biases: dict[tuple[str, int], float] = field(default_factory=dict)
    curves: dict[tuple[str, int], list[list[float]]] = field(default_factory=dict)

    images: dict[str, np.ndarray] = field(default_factory=dict)
    confusions: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, protocol: str, bound: BoundTasks, measured: Measured) -> None:
        """Append the rows of one protocol and way."""
        way = bound.spec.way
        rows = {"protocol": np.full(bound.number, protocol, dtype=object), "way": np.full(bound.number, way, np.int32)}
        rows["task"] = np.arange(bound.number, dtype=np.int32)
        rows |= {name: values.numpy().astype(np.float32) for name, values in measured.values.items()}
        before = len(self.columns.get("task", ()))
        for name in self.columns.keys() | rows.keys():
            old = self.columns.get(name, np.full(before, np.nan, np.float32))
            new = rows.get(name, np.full(bound.number, np.nan, np.float32))
            self.columns[name] = np.concatenate([old, new]) if before else new
        self.tasks[protocol, way] = bound.name
        if measured.curve is not None:
            self.curves[protocol, way] = measured.curve.tolist()
        if measured.counts is not None:
            self.images = _with_way(self.images, way, measured.counts.images())
            self.confusions = _with_way(self.confusions, way, measured.counts.confusions())


def _with_way(before: dict[str, np.ndarray], way: int, rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Columns with the rows of one more way."""
    rows = {"way": np.full(len(next(iter(rows.values()))), way, np.int32)} | rows
    return {name: np.concatenate([before[name], values]) for name, values in rows.items()} if before else rows


@torch.no_grad()
def evaluate_cell(
    method: Method,
    embedded: Embedded,
    dataset: Dataset,
    test: Mapping[int, Tasks],
    calibration: Mapping[int, Tasks],
    *,
    few_shot_ways: tuple[int, ...] = (5,),
    detailed_ways: tuple[int, ...] = (5,),
    few_shot_model: tuple[Method, Embedded] | None = None,
    seen: Tasks | None = None,
    overlaps: Mapping[str, Embedded] | None = None,
    limit: int | None = None,
    memory_mb: int = MEMORY_MB,
    device: torch.device = CPU,
    progress: Progress = no_progress,
) -> Evaluation:
    """Measure a method on test tasks (by way), calibrated on the validation tasks of the same key.

    `few_shot_ways` are the ways measured as FSL too, also with the weights of `few_shot_model` where few-shot use would
    have chosen others; `detailed_ways` are those with MAP and confidences. `seen` adds the comparison of classifiers on
    the seen classes, `overlaps` the first way once more with other embeddings, by the name of the protocol. `limit`
    takes the first tasks of each list only, for methods that fine-tune per task; the records say so. `memory_mb` bounds
    the measures' memory, see `TaskPool`.
    """
    method = method.to(device).eval()
    evaluation = Evaluation()
    val_pool, test_pool = (TaskPool(split, embedded, dataset, device, memory_mb) for split in ("val", "test"))
    val_scorer, scorer = method.scorer(val_pool.pool), method.scorer(test_pool.pool)
    other_scorer, other_pool = scorer, test_pool
    if few_shot_model:
        other, other_embedded = few_shot_model
        other_pool = TaskPool("test", other_embedded, dataset, device, memory_mb)
        other_scorer = other.to(device).eval().scorer(other_pool.pool)
    for way, tasks in test.items():
        bias = best_bias(outcomes(val_scorer, BoundTasks(calibration[way], val_pool, limit), progress))
        bound = BoundTasks(tasks, test_pool, limit)
        measured = generalised(scorer, bound, bias, detailed=way in detailed_ways, progress=progress)
        evaluation.add("gfsl", bound, measured)
        evaluation.biases["gfsl", way] = bias
        if way in few_shot_ways:
            if method.few_shot_is_joint:
                own = {"u_u": measured.values["u_u"]}  # known, and a fit per task is dear
                progress(bound.number)
            else:
                own = few_shot(scorer, bound, progress).values
            chosen = few_shot(other_scorer, BoundTasks(tasks, other_pool, limit)).values if few_shot_model else own
            evaluation.add("fsl", bound, Measured(own | {"sel_u_u": chosen["u_u"]}))
    way, tasks = next(iter(test.items()))
    for name, others in (overlaps or {}).items():
        pool = TaskPool("test", others, dataset, device, memory_mb)
        bound = BoundTasks(tasks, pool, limit)
        bias = evaluation.biases["gfsl", way]
        values = generalised(method.scorer(pool.pool), bound, bias, detailed=False, progress=progress).values
        evaluation.add(name, bound, Measured(values))
    if seen is not None:
        bound = BoundTasks(seen, TaskPool("seen", embedded, dataset, device, memory_mb), limit)
        evaluation.add("seen", bound, Measured(seen_accuracies(method, bound, progress)))
    return evaluation


@torch.no_grad()
def mean_hm(
    method: Method,
    embedded: Embedded,
    dataset: Dataset,
    tasks: Tasks,
    *,
    limit: int | None = None,
    memory_mb: int = MEMORY_MB,
    device: torch.device = CPU,
) -> float:
    """See `selecting_hm`."""
    task_pool = TaskPool(tasks.spec.split, embedded, dataset, device, memory_mb)
    return selecting_hm(method, method.to(device).eval().scorer(task_pool.pool), BoundTasks(tasks, task_pool, limit))


@torch.no_grad()
def selecting_hm(method: Method, scorer: Scorer, bound: BoundTasks) -> float:
    """Mean HM in percent: what model selection and tuning on validation tasks go by; calibrated for some methods."""
    result = outcomes(scorer, bound)
    bias = best_bias(result) if method.selected_calibrated else 0.0
    return float(100 * harmonic(*joint_accuracies(result, bias)).mean())
