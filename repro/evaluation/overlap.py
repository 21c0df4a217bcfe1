"""What published numbers rest on where some seen test images are training images: simulated by swapping embeddings.

A share of every seen class's `seen_test` images is replaced by remembered training images of the same class, the same
ones in all tasks, as an overlapping list of images would have it.

Dimensions as in `repro.methods.base`.
"""

import torch
from torch import Tensor

from repro.data.dataset import Dataset
from repro.data.seeding import generator
from repro.errors import BadInput
from repro.evaluation.embed import Embedded


def overlapping(embedded: Embedded, data: Dataset, exemplars_SM: Tensor, percent: int, seed: int) -> Embedded:
    """The embeddings with `percent` of the seen test images standing for training images (rows `exemplars_SM`).

    A larger share contains a smaller one. Raises BadInput where fewer training images were embedded than that takes.
    """
    replaced, replacing = [], []
    labels_N, rows_N = data.labels_N, data.roles["seen_test"]
    for label, trained_M in enumerate(exemplars_SM):
        own_N = rows_N[labels_N[rows_N] == label]
        order = generator(seed, "overlap", label)
        number = round(len(own_N) * percent / 100)
        if number > len(trained_M):
            message = f"an overlap of {percent} % takes {number} training images of a class, {len(trained_M)} have"
            raise BadInput(f"{message} an embedding; lower `overlap` in the grid's line")
        replaced.append(own_N[torch.randperm(len(own_N), generator=order)[:number]])
        replacing.append(trained_M[torch.randperm(len(trained_M), generator=order)[:number]])
    embeddings_ND = embedded.embeddings_ND.clone()
    embeddings_ND[torch.searchsorted(embedded.rows_N, torch.cat(replaced))] = embedded.of(torch.cat(replacing))
    return Embedded(embedded.rows_N, embeddings_ND, embedded.model)
