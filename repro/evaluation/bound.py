"""Task lists bound to embedded images, and cut into the blocks and chunks that the evaluation works on.

Scores are computed in blocks of a fixed number of tasks, the last one filled up with repetitions, so that every
kernel sees the same shapes and a task's result does not depend on how many others there are. Measures are computed
for chunks of whole blocks; the chunk bounds memory and changes no result.

Dimensions as in `repro.methods.base`.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from repro.data.dataset import ROLES, Dataset
from repro.data.episodes import ROLES_OF_TASKS, Tasks
from repro.errors import BadInput
from repro.evaluation.embed import Embedded
from repro.evaluation.workers import workers
from repro.methods.base import Pool, TaskBatch, take

# Queries scored at once, by device: few enough for a processor's cache, many enough to keep an accelerator busy.
BLOCK_QUERIES = {"cpu": 19_200}
BLOCK_QUERIES_ELSEWHERE = 120_000
MEMORY_MB = 256
CHUNK_BLOCKS = 2  # more blocks at once are no faster, however much memory there is
NUMBERS_PER_QUERY, NUMBERS_PER_TASK = 16, 800  # of 8 bytes, live at once while a chunk is measured
CHECKED_TASKS = 1024


class TaskPool:
    """The embedded images that tasks of one split point into, and where each dataset row lies among them."""

    def __init__(
        self, split: str, embedded: Embedded, dataset: Dataset, device: torch.device, memory_mb: int = MEMORY_MB
    ) -> None:
        """All images of the split's roles; of `train`, which may be large, those that were embedded.

        `memory_mb` bounds the memory of the measures, all threads together; each always holds one block of tasks.
        """
        roles = set(ROLES_OF_TASKS[split])
        rows_N = torch.cat([dataset.roles[role] for role in ROLES if role in roles])
        rows_N = rows_N[torch.isin(rows_N, embedded.rows_N) | ~torch.isin(rows_N, dataset.roles["train"])]
        self.pool = Pool(embedded.of(rows_N).to(device), dataset.labels_N[rows_N].to(device))
        self.place_N = torch.full((len(dataset.labels_N),), -1, dtype=torch.int64)
        self.place_N[rows_N] = torch.arange(len(rows_N))
        self.rows_N = rows_N
        self.split, self.seen_classes, self.device, self.memory_mb = split, dataset.seen_classes, device, memory_mb


class BoundTasks:
    """A task list bound to a pool: image rows become pool rows."""

    def __init__(self, tasks: Tasks, task_pool: TaskPool, limit: int | None = None) -> None:
        """`limit` keeps the first tasks only. Raises BadInput where the tasks are not of this pool."""
        self.spec, self.tasks = tasks.spec, tasks
        self.pool, self.device, self.seen_classes = task_pool.pool, task_pool.device, task_pool.seen_classes
        self.rows_N = task_pool.rows_N
        self.number = min(tasks.spec.tasks, limit or tasks.spec.tasks)
        self.seen_queries = tasks.spec.seen_queries
        self.queries = self.seen_queries + tasks.spec.way * tasks.spec.query
        rows_per_block = BLOCK_QUERIES.get(self.device.type, BLOCK_QUERIES_ELSEWHERE)
        self.block = max(1, rows_per_block // self.queries)
        self.memory_mb, self._place_N = task_pool.memory_mb, task_pool.place_N
        self._check(task_pool.split)

    @property
    def name(self) -> str:
        """Names the tasks that are measured: equal names, equal tasks."""
        whole = self.number == self.spec.tasks
        return self.tasks.digest if whole else f"{self.tasks.digest}[:{self.number}]"

    def chunks(self) -> Iterator[range]:
        """Cut the tasks so that the measures of all chunks that are worked on at once take `memory_mb` at most.

        A chunk is one block at least.
        """
        bytes_per_task = 8 * (NUMBERS_PER_QUERY * self.queries + NUMBERS_PER_TASK)
        blocks = self.memory_mb * 2**20 // (workers(self.device) * bytes_per_task * self.block)
        size = self.block * min(max(1, blocks), CHUNK_BLOCKS)
        for start in range(0, self.number, size):
            yield range(start, min(start + size, self.number))

    def blocks(self, some: range) -> Iterator[tuple[TaskBatch, Tensor, int]]:
        """Yield blocks of these tasks, their queries' labels (T×Q), and how many of them are no repetition.

        Seen queries come first; labels count seen classes from 0 and the task's ways from S.
        """
        filled = -(-len(some) // self.block) * self.block
        chosen = torch.arange(some.start, some.start + filled).clamp_max_(some.stop - 1)
        tasks = (self.tasks.seen_TQ, self.tasks.query_TWQ.flatten(1), self.tasks.support_TWK.flatten(1))
        seen_TA, unseen_TB, support = (rows.index_select(0, chosen) for rows in tasks)
        queries_TQ = take(self._place_N, torch.cat([seen_TA, unseen_TB], dim=1)).to(self.device)
        support_TWK = take(self._place_N, support).to(self.device).unflatten(1, self.tasks.support_TWK.shape[1:])
        labels_TQ = take(self.pool.labels_N, queries_TQ)
        ways_W = torch.arange(self.spec.way, device=self.device)
        labels_TQ[:, self.seen_queries :] = self.seen_classes + ways_W.repeat_interleave(self.spec.query)
        for start in range(0, len(some), self.block):
            block = slice(start, start + self.block)
            yield TaskBatch(support_TWK[block], queries_TQ[block]), labels_TQ[block], min(self.block, len(some) - start)

    def _check(self, split: str) -> None:
        labels_N = torch.full_like(self._place_N, -1)
        inside = self._place_N >= 0
        labels_N[inside] = self.pool.labels_N.cpu()[self._place_N[inside]]
        parts = range(0, self.number, CHECKED_TASKS)
        if self.spec.split != split or not all(
            self._fits(labels_N, slice(start, min(start + CHECKED_TASKS, self.number))) for start in parts
        ):
            raise BadInput(f"task list {self.tasks.digest[:12]} is not of these images; draw tasks for this dataset")

    def _fits(self, labels_N: Tensor, some: slice) -> bool:
        """Whether every image is in the pool, of the class that its task says or of a seen one."""
        own_TWI = torch.cat([self.tasks.support_TWK[some], self.tasks.query_TWQ[some]], dim=2)
        seen_TQ = self.tasks.seen_TQ[some]
        if max(int(own_TWI.max()), int(seen_TQ.max()) if seen_TQ.numel() else 0) >= len(labels_N):
            return False
        right_classes = take(labels_N, own_TWI) == self.tasks.classes_TW[some, :, None]
        seen_labels_TQ = take(labels_N, seen_TQ)
        return bool(right_classes.all() and ((seen_labels_TQ >= 0) & (seen_labels_TQ < self.seen_classes)).all())
