"""Many tasks under one protocol: gather, score, measure, in blocks of tasks that fit near the processor.

Scores are computed in blocks of a fixed number of tasks, the last one filled up with repetitions, so that every
kernel sees the same shapes and a task's result does not depend on how many others there are. Measures are computed
for chunks of whole blocks; the chunk bounds memory and changes no result.

Dimensions as in `repro.methods.base`, and: A seen queries, B unseen queries of a task, G points of a plotted curve.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from repro.data.dataset import ROLES, Dataset
from repro.data.episodes import ROLES_OF_TASKS, Tasks
from repro.errors import BadInput
from repro.evaluation import ausuc
from repro.evaluation.average_precision import map_measures
from repro.evaluation.embed import Embedded
from repro.evaluation.metrics import Outcome, confidences, measures, outcome
from repro.methods.base import Pool, Scorer, TaskBatch

# Queries scored at once, by device: few enough for a processor's cache, many enough to keep an accelerator busy.
BLOCK_QUERIES = {"cpu": 4800}
BLOCK_QUERIES_ELSEWHERE = 120_000
CHUNK_TASKS = 1024  # more tasks at once are no faster
CURVE_POINTS = 101
Progress = Callable[[int], None]


def no_progress(tasks: int) -> None:
    """Say nothing about `tasks` more finished tasks."""


class TaskPool:
    """The embedded images that tasks of one split point into, and where each dataset row lies among them."""

    def __init__(self, split: str, embedded: Embedded, dataset: Dataset, device: torch.device) -> None:
        """All images of the split's roles; of `train`, which may be large, those that were embedded."""
        roles = set(ROLES_OF_TASKS[split])
        rows_N = torch.cat([dataset.roles[role] for role in ROLES if role in roles])
        rows_N = rows_N[torch.isin(rows_N, embedded.rows_N) | ~torch.isin(rows_N, dataset.roles["train"])]
        self.pool = Pool(embedded.of(rows_N).to(device), dataset.labels_N[rows_N].to(device))
        self.place_N = torch.full((len(dataset.labels_N),), -1, dtype=torch.int64)
        self.place_N[rows_N] = torch.arange(len(rows_N))
        self.split, self.seen_classes, self.device = split, dataset.seen_classes, device


class BoundTasks:
    """A task list bound to a pool: image rows become pool rows."""

    def __init__(self, tasks: Tasks, task_pool: TaskPool, limit: int | None = None) -> None:
        """`limit` keeps the first tasks only. Raises BadInput where the tasks are not of this pool."""
        self.spec, self.tasks = tasks.spec, tasks
        self.pool, self.device, self.seen_classes = task_pool.pool, task_pool.device, task_pool.seen_classes
        self.number = min(tasks.spec.tasks, limit or tasks.spec.tasks)
        self.seen_queries = tasks.spec.seen_queries
        rows_per_block = BLOCK_QUERIES.get(self.device.type, BLOCK_QUERIES_ELSEWHERE)
        self.block = max(1, rows_per_block // (self.seen_queries + tasks.spec.way * tasks.spec.query))
        self._place_N = task_pool.place_N
        self._check(task_pool.split)

    @property
    def name(self) -> str:
        """Names the tasks that are measured: equal names, equal tasks."""
        whole = self.number == self.spec.tasks
        return self.tasks.digest if whole else f"{self.tasks.digest}[:{self.number}]"

    def batch(self, start: int) -> tuple[TaskBatch, Tensor]:
        """A block of tasks from `start` on, the last task repeated beyond the end, and the queries' labels (T×Q).

        Seen queries come first; labels count seen classes from 0 and the task's ways from S.
        """
        chosen = torch.arange(start, start + self.block).clamp_max_(self.number - 1)
        images_TQ = torch.cat([self.tasks.seen_TQ[chosen], self.tasks.query_TWQ[chosen].flatten(1)], dim=1)
        queries_TQ = self._place_N[images_TQ.long()].to(self.device)
        support_TWK = self._place_N[self.tasks.support_TWK[chosen].long()].to(self.device)
        labels_TQ = self.pool.labels_N[queries_TQ]
        ways_W = torch.arange(self.spec.way, device=self.device)
        labels_TQ[:, self.seen_queries :] = self.seen_classes + ways_W.repeat_interleave(self.spec.query)
        return TaskBatch(support_TWK, queries_TQ), labels_TQ

    def _check(self, split: str) -> None:
        if self.spec.split != split or not self._fits():
            raise BadInput(f"task list {self.tasks.digest[:12]} is not of these images; draw tasks for this dataset")

    def _fits(self) -> bool:
        """Whether every image is in the pool, of the class that its task says or of a seen one."""
        own = torch.cat([self.tasks.support_TWK, self.tasks.query_TWQ], dim=2)[: self.number].long()
        seen = self.tasks.seen_TQ[: self.number].long()
        labels_N = torch.full_like(self._place_N, -1)
        inside = self._place_N >= 0
        labels_N[inside] = self.pool.labels_N.cpu()[self._place_N[inside]]
        if max(int(own.max()), int(seen.max()) if seen.numel() else 0) >= len(labels_N):
            return False
        right_classes = labels_N[own] == self.tasks.classes_TW[: self.number, :, None]
        right_seen = (labels_N[seen] >= 0) & (labels_N[seen] < self.seen_classes)
        return bool(right_classes.all() and right_seen.all())


@dataclass(frozen=True)
class Measured:
    """Per-task values of one protocol in percent, and for GFSL the mean seen-unseen curve (G×2: unseen, seen)."""

    values: dict[str, Tensor]
    curve: Tensor | None = None


def few_shot(scorer: Scorer, bound: BoundTasks, progress: Progress = no_progress) -> Measured:
    """U→U of few-shot use: the task's own classes are all there is."""
    accuracy = []
    for batch, labels_TQ, real in blocks(bound, range(bound.number), progress):
        queries_TB = batch.queries_TQ[:, bound.seen_queries :]
        logits_TBW = scorer.unseen_logits(TaskBatch(batch.support_TWK, queries_TB))
        right_TB = logits_TBW.argmax(dim=-1) + bound.seen_classes == labels_TQ[:, bound.seen_queries :]
        accuracy.append(right_TB.double().mean(dim=1)[:real].cpu())
    return Measured({"u_u": 100 * torch.cat(accuracy)})


def generalised(
    scorer: Scorer,
    bound: BoundTasks,
    bias: float,
    *,
    detailed: bool = True,
    memory_mb: int = 256,
    progress: Progress = no_progress,
) -> Measured:
    """All measures of the joint label set; MAP and confidence only where `detailed`.

    `memory_mb` bounds the memory of the measures; one block of tasks is always held.
    """
    unseen_G = torch.linspace(0, 1, CURVE_POINTS, dtype=torch.float64, device=bound.device)
    parts: list[dict[str, Tensor]] = []
    curves: list[Tensor] = []
    for result, extra in _chunks(scorer, bound, detailed, memory_mb, progress):
        points, areas = _seen_unseen(result, bound)
        curves.append(ausuc.resample(points, unseen_G).cpu())
        parts.append({name: values.cpu() for name, values in (measures(result, bias) | areas | extra).items()})
    values = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    return Measured(values, 100 * torch.stack([unseen_G.cpu(), torch.cat(curves).mean(dim=0)], dim=1))


def outcomes(scorer: Scorer, bound: BoundTasks, progress: Progress = no_progress) -> Outcome:
    """Margins and rightness of all tasks at once, for calibration and model selection."""
    return _joined([result for result, _ in _scored(scorer, bound, False, range(bound.number), progress)])


def _seen_unseen(result: Outcome, bound: BoundTasks) -> tuple[ausuc.Curve, dict[str, Tensor]]:
    seen_TA, unseen_TB = result.parts(result.labels_TQ)
    seen_weights_TA, occurring_T = ausuc.class_weights(seen_TA, 0, bound.seen_classes)
    unseen_weights_TB, _ = ausuc.class_weights(unseen_TB, bound.seen_classes, bound.spec.way)
    points = ausuc.curve(result, seen_weights_TA, unseen_weights_TB)
    area_T = 100 * ausuc.area(points)
    # The released definition averages over all seen classes, absent ones as 0.
    return points, {"ausuc": area_T, "ausuc_released": area_T * occurring_T / bound.seen_classes}


def _chunks(
    scorer: Scorer, bound: BoundTasks, detailed: bool, memory_mb: int, progress: Progress
) -> Iterator[tuple[Outcome, dict[str, Tensor]]]:
    """Yield outcomes of several blocks at once, and MAP and confidence of the same tasks where `detailed`."""
    queries = bound.seen_queries + bound.spec.way * bound.spec.query
    bytes_per_task = 16 * 8 * queries + 8 * 8 * CURVE_POINTS  # about 16 numbers per query live at once
    tasks = min(memory_mb * 2**20 // bytes_per_task, CHUNK_TASKS)
    tasks = max(bound.block, tasks - tasks % bound.block)
    for start in range(0, bound.number, tasks):
        some = range(start, min(start + tasks, bound.number))
        results, extras = zip(*_scored(scorer, bound, detailed, some, progress), strict=True)
        yield _joined(results), {name: torch.cat([extra[name] for extra in extras]) for name in extras[0]}


def _scored(
    scorer: Scorer, bound: BoundTasks, detailed: bool, some: range, progress: Progress
) -> Iterator[tuple[Outcome, dict[str, Tensor]]]:
    """Yield each block's outcome, and its MAP and confidence where `detailed`."""
    for batch, labels_TQ, real in blocks(bound, some, progress):
        scores = scorer(batch)
        result = outcome(scores, labels_TQ, bound.seen_queries, bound.seen_classes)
        if result.margin_TQ.isnan().any():
            raise BadInput("a joint score is not a number; the training diverged, lower its learning rate")
        extra: dict[str, Tensor] = {}
        if detailed:
            seen_TQS = scorer.seen_logits(batch) if scores.seen_TQS is None else scores.seen_TQS
            seen_TA, unseen_TB = result.parts(labels_TQ)
            extra = confidences(scores, seen_TQS, bound.seen_queries) | map_measures(
                seen_TQS[:, : bound.seen_queries],
                scores.unseen_TQW[:, bound.seen_queries :],
                seen_TA,
                unseen_TB - bound.seen_classes,
            )
        yield result.first(real), {name: values[:real] for name, values in extra.items()}


def blocks(bound: BoundTasks, some: range, progress: Progress) -> Iterator[tuple[TaskBatch, Tensor, int]]:
    """Yield blocks of tasks, their queries' labels, and how many of the tasks are no repetition."""
    for start in some[:: bound.block]:
        batch, labels_TQ = bound.batch(start)
        real = min(bound.block, some.stop - start)
        yield batch, labels_TQ, real
        progress(real)


def _joined(results: Sequence[Outcome]) -> Outcome:
    return Outcome(
        torch.cat([result.margin_TQ for result in results]),
        torch.cat([result.right_TQ for result in results]),
        torch.cat([result.labels_TQ for result in results]),
        results[0].seen_queries,
    )
