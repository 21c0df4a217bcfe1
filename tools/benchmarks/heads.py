"""The training heads against the released formulation of the same loss: time and peak memory, forward and backward.

The reference follows the released code's way of computing, rewritten here: every task projects its own copy of the
bases; CASTLE places synthesised rows into T joint classifiers by products with 0/1 matrices and scores all T·S
columns; aCASTLE attends task by task. Setting: D = 640, 64 seen classes, 24 sampled, 5 ways, 128 queries, one thread,
no dropout, the released form of the dictionary. Both sides get the same embeddings, weights and tasks.

Dimensions as in `repro.methods.base`; J = T·S columns of all tasks' joint classifiers.
"""

import os
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from repro.data.seeding import generator
from repro.methods.acastle import ACastle
from repro.methods.base import EmbeddedBatch
from repro.methods.castle import Castle
from repro.methods.shared.synthesis import draw_class_sets
from repro.models.neural_dictionary import ReleasedDictionary
from tools.benchmarks.timing import interleaved, threads

DIM, SEEN, CLASSES, QUERIES = 640, 64, 24, 128
CASES: dict[str, tuple[type[Castle] | type[ACastle], int]] = {
    "head_castle_64": (Castle, 64),
    "head_castle_256": (Castle, 256),
    "head_acastle_64": (ACastle, 64),
    "head_acastle_256": (ACastle, 256),
}


def reference_attention(dictionary: ReleasedDictionary, rows_TND: Tensor) -> Tensor:
    """Synthesis with one head, keys and values of rows and repeated bases projected for every task."""
    bases_TMD = dictionary.bases_MD.repeat(len(rows_TND), 1, 1)
    members_TYD = torch.cat([rows_TND, bases_TMD], dim=1)
    queries, keys = dictionary.w_qs(rows_TND), dictionary.w_ks(members_TYD)
    attention_TNY = (torch.bmm(queries, keys.transpose(1, 2)) / dictionary.score_scale).softmax(dim=2)
    return rows_TND + dictionary.fc(torch.bmm(attention_TNY, dictionary.w_vs(members_TYD)))


def reference_castle(method: Castle, batch: EmbeddedBatch, tasks_TW: Tensor) -> Tensor:
    """Eq. 7 with T full joint classifiers, put together by 0/1 matrices, and the (query × task) × S logits."""
    dictionary, theta_SD = _released(method), method.seen_weight_SD
    tasks, seen = len(tasks_TW), len(theta_SD)
    prototypes_TWD = batch.support_TCKD[0][tasks_TW].mean(dim=2)
    new_TWD = reference_attention(dictionary, prototypes_TWD)
    columns = (batch.labels_TC[0][tasks_TW] + torch.arange(tasks).unsqueeze(1) * seen).flatten()
    keep_SJ = torch.eye(seen, dtype=theta_SD.dtype).repeat(1, tasks)
    keep_SJ[:, columns] = 0
    place = F.one_hot(columns, tasks * seen).to(theta_SD.dtype)
    joint_DJ = F.normalize(theta_SD.T @ keep_SJ + new_TWD.flatten(0, 1).T @ place, dim=0)
    logits = (batch.free_BD @ joint_DJ).view(-1, seen) / method.temperature
    return F.cross_entropy(logits, batch.free_labels_B.repeat_interleave(tasks))


def reference_acastle(method: ACastle, batch: EmbeddedBatch, tasks_TW: Tensor) -> Tensor:
    """Eq. 7 with a loop over tasks, each synthesising all S classifiers."""
    dictionary, theta_SD = _released(method), method.seen_weight_SD
    seen, logits = len(theta_SD), []
    for task_W in tasks_TW:
        labels_W = batch.labels_TC[0][task_W]
        keep_SS = torch.eye(seen, dtype=theta_SD.dtype)
        keep_SS[:, labels_W] = 0
        prototypes_WD = batch.support_TCKD[0][task_W].mean(dim=1)
        place_WS = F.one_hot(labels_W, seen).to(theta_SD.dtype)
        rows_SD = (theta_SD.T @ keep_SS + prototypes_WD.T @ place_WS).T
        joint_SD = reference_attention(dictionary, rows_SD.unsqueeze(0)).squeeze(0)
        logits.append(batch.free_BD @ F.normalize(joint_SD, dim=1).T)
    all_logits = torch.cat(logits, dim=1).view(-1, seen) / method.training_temperature
    return F.cross_entropy(all_logits, batch.free_labels_B.repeat_interleave(len(tasks_TW)))


def _released(method: Castle | ACastle) -> ReleasedDictionary:
    dictionary = method.synthesis.dictionary
    assert isinstance(dictionary, ReleasedDictionary)
    return dictionary


def reference_loss(method: Castle | ACastle, batch: EmbeddedBatch, draws: torch.Generator) -> Tensor:
    """The released formulation of `method.loss`, with the tasks that the same generator gives there."""
    tasks_TW = draw_class_sets(batch.labels_TC.shape[1], method.classifiers, method.ways, draws)
    if isinstance(method, Castle):
        return reference_castle(method, batch, tasks_TW)
    return reference_acastle(method, batch, tasks_TW)


def example(
    method_class: type[Castle] | type[ACastle],
    tasks: int,
    *,
    dim: int = DIM,
    seen: int = SEEN,
    classes: int = CLASSES,
    queries: int = QUERIES,
    shot: int = 1,
) -> tuple[Castle | ACastle, EmbeddedBatch]:
    """A method with random weights (no dropout) and a random embedded batch, leaves that ask for gradients."""
    torch.manual_seed(0)
    method = method_class(nn.Identity(), dim, seen, dictionary="released", classifiers=tasks).eval()
    support_TCKD = torch.randn(1, classes, shot, dim, requires_grad=True)
    return method, EmbeddedBatch(
        support_TCKD=support_TCKD,
        query_TCQD=support_TCKD[:, :, :0].detach(),
        labels_TC=torch.randperm(seen)[:classes].unsqueeze(0),
        free_BD=torch.randn(queries, dim, requires_grad=True),
        free_labels_B=torch.randint(seen, (queries,)),
    )


def bench_heads(name: str, repeats: int) -> dict[str, float]:
    """Medians over interleaved repeats, in CPU seconds and megabytes, of a forward and backward pass of one head.

    Keys: ours_s, reference_s, ratio (reference over ours), ours_peak_mb, reference_peak_mb. CPU time: with one thread
    it is the wall time of an idle machine, and a busy one does not disturb it.
    """
    method, batch = example(*CASES[name])

    def ours() -> None:
        method.loss(batch, generator(0, "tasks")).backward()

    def reference() -> None:
        reference_loss(method, batch, generator(0, "tasks")).backward()

    with threads(1):
        figures = interleaved(ours, reference, repeats, clock=time.process_time)
        return figures | {"ours_peak_mb": _peak_mb(ours), "reference_peak_mb": _peak_mb(reference)}


def _peak_mb(work: Callable[[], None]) -> float:
    """The largest sum of tensor memory alive at once, from the profiler's allocations and releases in order."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler reports its own start and stop otherwise
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        work()
    alive = peak = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            alive += event.nbytes()
            peak = max(peak, alive)
    return peak / 2**20
