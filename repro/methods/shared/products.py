"""Products of many tasks' queries with their own classifiers, without ever holding all the gathered embeddings.

Dimensions as in `base`, and: Z columns of a task.
"""

import torch
from torch import Tensor

GATHERED_BYTES = 1 << 20  # embeddings gathered at a time: what stays in a core's own cache


def products(rows_ND: Tensor, queries_TQ: Tensor, columns_TZD: Tensor) -> Tensor:
    """The row of every query times its task's columns (T×Z×Q).

    Some tasks are gathered at a time, into memory that is used again: asking the system for new pages would take
    longer than the products.
    """
    tasks, queries = queries_TQ.shape
    size = max(1, GATHERED_BYTES // max(1, queries * rows_ND[0].nbytes)) if rows_ND.device.type == "cpu" else tasks
    gathered = rows_ND.new_empty(min(size, tasks), queries, rows_ND.shape[1])
    found_TZQ = columns_TZD.new_empty(tasks, columns_TZD.shape[1], queries)
    for start in range(0, tasks, size):
        chosen_TQ, columns = queries_TQ[start : start + size], columns_TZD[start : start + size]
        part_TQD = gathered[: len(chosen_TQ)]
        torch.index_select(rows_ND, 0, chosen_TQ.flatten(), out=part_TQD.flatten(0, 1))
        torch.bmm(columns, part_TQD.mT, out=found_TZQ[start : start + size])
    return found_TZQ
