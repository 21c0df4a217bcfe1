"""Many tasks under one protocol: score blocks of tasks, measure chunks of blocks, chunks side by side.

Dimensions as in `repro.methods.base`, and: A seen queries, B unseen queries of a task, G points of a plotted curve.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from repro.errors import Diverged
from repro.evaluation import ausuc
from repro.evaluation.average_precision import map_measures
from repro.evaluation.bound import BoundTasks
from repro.evaluation.counts import Counts
from repro.evaluation.metrics import QueryOutcomes, confidences, measures, outcome
from repro.evaluation.workers import in_order
from repro.methods.base import Scorer, Scores, TaskBatch

CURVE_POINTS = 101
Progress = Callable[[int], object]


def no_progress(tasks: int) -> None:
    """Say nothing about `tasks` more finished tasks."""


@dataclass(frozen=True)
class Measured:
    """Per-task values of one protocol in percent; for GFSL counts and the mean seen-unseen curve (G×2)."""

    values: dict[str, Tensor]
    curve: Tensor | None = None
    counts: Counts | None = None


def by_chunk(
    work: Callable[[range], dict[str, Tensor]], bound: BoundTasks, progress: Progress
) -> Iterator[dict[str, Tensor]]:
    """Yield what `work` gives for every chunk of tasks, in order, on the CPU."""
    chunks = list(bound.chunks())
    for chunk, found in zip(chunks, in_order(work, chunks, bound.device), strict=True):
        yield {name: values.cpu() for name, values in found.items()}
        progress(len(chunk))


def concatenated(parts: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Per-task values of all chunks."""
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def few_shot(scorer: Scorer, bound: BoundTasks, progress: Progress = no_progress) -> Measured:
    """U→U of few-shot use: the task's own classes are all there is."""

    def accuracy(chunk: range) -> dict[str, Tensor]:
        right = []
        for batch, labels_TQ, real in bound.blocks(chunk):
            own = TaskBatch(batch.support_TWK, batch.queries_TQ[:, bound.seen_queries :])
            way_TB = scorer.unseen_logits(own).argmax(dim=-1)
            right.append((way_TB + bound.seen_classes == labels_TQ[:, bound.seen_queries :])[:real])
        return {"u_u": 100 * torch.cat(right).double().mean(dim=1)}

    return Measured(concatenated(list(by_chunk(accuracy, bound, progress))))


def generalised(
    scorer: Scorer,
    bound: BoundTasks,
    bias: float,
    *,
    detailed: bool = True,
    progress: Progress = no_progress,
) -> Measured:
    """All measures of the joint label set; MAP and confidence only where `detailed`."""
    counts = Counts(bound)
    unseen_G = torch.linspace(0, 1, CURVE_POINTS, dtype=torch.float64, device=bound.device)

    def more(batch: TaskBatch, scores: Scores, result: QueryOutcomes, tasks: int) -> dict[str, Tensor]:
        counts.add(batch, scores, result, bias, tasks)
        return _details(scores, result, bound) if detailed else {}

    def measure(chunk: range) -> dict[str, Tensor]:
        result, extra = _scored(scorer, bound, chunk, more)
        points, areas = _seen_unseen(result, bound)
        curves = {"curves": ausuc.exact_sum(ausuc.resample(points, unseen_G))}
        return measures(result, bias) | areas | extra | curves

    parts, curves_G = [], torch.zeros(CURVE_POINTS, dtype=torch.int64)
    for found in by_chunk(measure, bound, progress):
        curves_G += found.pop("curves")
        parts.append(found)
    mean_G = ausuc.exact_mean(curves_G, bound.number)
    return Measured(concatenated(parts), 100 * torch.stack([unseen_G.cpu(), mean_G], dim=1), counts)


def outcomes(scorer: Scorer, bound: BoundTasks, progress: Progress = no_progress) -> QueryOutcomes:
    """Margins and rightness of all tasks at once, for calibration and model selection."""

    def score(chunk: range) -> dict[str, Tensor]:
        result, _ = _scored(scorer, bound, chunk)
        return {"margin": result.margin_TQ, "right": result.right_TQ, "labels": result.labels_TQ}

    found = concatenated(list(by_chunk(score, bound, progress)))
    return QueryOutcomes(found["margin"], found["right"], found["labels"], bound.seen_queries)


def _seen_unseen(result: QueryOutcomes, bound: BoundTasks) -> tuple[ausuc.Curve, dict[str, Tensor]]:
    seen_TA, _ = result.parts(result.labels_TQ)
    seen_weights_TA, occurring_T = ausuc.class_weights(seen_TA, 0, bound.seen_classes)
    # Every way of a task has equally many queries.
    points = ausuc.curve(result, seen_weights_TA, 1 / (bound.spec.way * bound.spec.query))
    area_T = 100 * ausuc.area(points)
    # The released definition averages over all seen classes, absent ones as 0.
    return points, {"ausuc": area_T, "ausuc_released": area_T * occurring_T / bound.seen_classes}


def _nothing_more(batch: TaskBatch, scores: Scores, result: QueryOutcomes, tasks: int) -> dict[str, Tensor]:
    return {}


def _scored(
    scorer: Scorer,
    bound: BoundTasks,
    chunk: range,
    more: Callable[[TaskBatch, Scores, QueryOutcomes, int], dict[str, Tensor]] = _nothing_more,
) -> tuple[QueryOutcomes, dict[str, Tensor]]:
    """Outcomes of a chunk of tasks, and what else `more` makes of each block, of which the first tasks count."""
    results, extras = [], []
    for batch, labels_TQ, real in bound.blocks(chunk):
        scores = scorer(batch)
        result = outcome(scores, labels_TQ, bound.seen_queries, bound.seen_classes)
        if result.margin_TQ.isnan().any():
            raise Diverged("a joint score is not a number; the training diverged, lower its learning rate")
        extra = more(batch, scores, result, real)
        results.append((result.margin_TQ[:real], result.right_TQ[:real], result.labels_TQ[:real]))
        extras.append({name: values[:real] for name, values in extra.items()})
    margin_TQ, right_TQ, labels_TQ = (torch.cat(parts) for parts in zip(*results, strict=True))
    return QueryOutcomes(margin_TQ, right_TQ, labels_TQ, bound.seen_queries), concatenated(extras)


def _details(scores: Scores, result: QueryOutcomes, bound: BoundTasks) -> dict[str, Tensor]:
    """MAP and confidence of one block."""
    seen = bound.seen_queries
    labels_TA, ways_TB = result.parts(result.labels_TQ)
    return confidences(scores, seen) | map_measures(
        scores.seen_logits(seen), scores.unseen_TQW[:, seen:], labels_TA, ways_TB - bound.seen_classes
    )
