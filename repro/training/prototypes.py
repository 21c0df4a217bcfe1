"""Model selection in pre-training: nearest-prototype accuracy on validation tasks.

Dimensions: T tasks, W ways, K shots, Q queries per way, D features, N images of all tasks.
"""

import torch
from torch import Tensor, nn

from repro.data.loading import ImageStore
from repro.training.embedding import embed_rows

TASKS_AT_ONCE = 128


def prototype_accuracy(backbone: nn.Module, store: ImageStore, support_TWK: Tensor, query_TWQ: Tensor) -> float:
    """Mean accuracy (0 … 100) over tasks, each query to the class with the nearest (Euclidean) mean of its support.

    Tasks are rows of the dataset; every image is embedded once.
    """
    rows_N, places = torch.cat([support_TWK.flatten(), query_TWQ.flatten()]).unique(return_inverse=True)
    embeddings_ND = embed_rows(backbone, store, rows_N)
    support, query = places.to(embeddings_ND.device).split([support_TWK.numel(), query_TWQ.numel()])
    correct = sum(
        _correct(embeddings_ND, some_support, some_query)
        for some_support, some_query in zip(
            support.view(support_TWK.shape).split(TASKS_AT_ONCE),
            query.view(query_TWQ.shape).split(TASKS_AT_ONCE),
            strict=True,
        )
    )
    return 100 * correct / query_TWQ.numel()


def _correct(embeddings_ND: Tensor, support_TWK: Tensor, query_TWQ: Tensor) -> int:
    prototypes_TWD = embeddings_ND[support_TWK].mean(dim=2)
    queries_TQD = embeddings_ND[query_TWQ.flatten(1)]
    # The query's own length does not change which prototype is nearest.
    scores_TQW = 2 * queries_TQD @ prototypes_TWD.mT - prototypes_TWD.square().sum(-1).unsqueeze(1)
    truth_WQ = torch.arange(query_TWQ.shape[1], device=query_TWQ.device)[:, None].expand(query_TWQ.shape[1:])
    return int((scores_TQW.argmax(dim=-1) == truth_WQ.flatten()).sum())
