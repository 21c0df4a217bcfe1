"""Every image passes the backbone once per model; its embedding is kept beside the checkpoint.

Dimensions: N images, D features, C channels, H height, W width.
"""

import copy
import json
import logging
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.fx.experimental.optimization import fuse

from repro.data.dataset import Dataset
from repro.data.loading import normalise, on_device
from repro.errors import BadInput
from repro.files import MAKE_AGAIN, whole_file

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Embedded:
    """Embeddings of some images of a dataset: `rows_N` ascending, the model's hash beside them."""

    rows_N: Tensor
    embeddings_ND: Tensor
    model: str

    def of(self, rows: Tensor) -> Tensor:
        """Embeddings of these dataset rows, of any shape (…×D); raises BadInput where one was not embedded."""
        place = torch.searchsorted(self.rows_N, rows.contiguous()).clamp_max(len(self.rows_N) - 1)
        missing = rows[self.rows_N[place] != rows]
        if len(missing):
            raise BadInput(f"image {int(missing[0])} has no embedding; embed all images that the evaluation needs")
        return self.embeddings_ND[place]


def rows_needed(dataset: Dataset, *more: Tensor) -> Tensor:
    """Dataset rows that an evaluation embeds, ascending: everything but `train`, and these rows of it besides."""
    roles = [rows for role, rows in dataset.roles.items() if role != "train"]
    return torch.cat([*roles, *(rows.flatten().long() for rows in more)]).unique()


@torch.no_grad()
def embed(backbone: nn.Module, dataset: Dataset, rows_N: Tensor, device: torch.device, batch: int = 512) -> Tensor:
    """Embeddings (N×D, float32, on the CPU) of these dataset rows, with the backbone in evaluation mode.

    Raises BadInput where an embedding is not finite.
    """
    network = folded(backbone).to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    parts = []
    for rows in rows_N.split(batch):
        images_NCHW = on_device(torch.from_numpy(dataset.pixels.of(rows.numpy())), device)
        embeddings_ND = network(normalise(images_NCHW)).float().cpu()
        wrong = rows[~embeddings_ND.isfinite().all(dim=1)]
        if len(wrong):
            row = int(wrong[0])
            name = dataset.header.classes[int(dataset.labels_N[row])].name
            message = f"{dataset.header.name}: the embedding of image {row} (class {name}) is not finite"
            raise BadInput(f"{message}; the training diverged, lower its learning rate and train again")
        parts.append(embeddings_ND)
    return torch.cat(parts)


def folded(backbone: nn.Module) -> nn.Module:
    """A copy in evaluation mode whose batch norms are folded into the convolutions before them.

    A network that cannot be traced symbolically is copied as it is: slower, with the same embeddings.
    """
    network = copy.deepcopy(backbone).eval()
    try:
        return fuse(network)
    except Exception as error:  # tracing runs the network's own code, which may raise anything
        logger.info("batch norm stays unfolded, the backbone cannot be traced: %s", error)
        return network


def write_embeddings(path: Path, embedded: Embedded) -> None:
    """Store embeddings as safetensors; equal content gives equal bytes."""
    tensors = {"rows": embedded.rows_N.contiguous(), "embeddings": embedded.embeddings_ND.contiguous()}
    with whole_file(path) as partial:
        save_file(tensors, partial, {"embedded": json.dumps({"model": embedded.model})})


def read_embeddings(path: Path, model: str) -> Embedded:
    """Read stored embeddings; raises BadInput where they are of another model than the one with hash `model`."""
    try:
        with safe_open(path, "pt") as stored:
            of_model = json.loads(stored.metadata()["embedded"])["model"]
            rows_N, embeddings_ND = stored.get_tensor("rows"), stored.get_tensor("embeddings")
    except (OSError, SafetensorError, TypeError, KeyError, ValueError) as error:
        raise BadInput(f"{path}: not stored embeddings ({error}); {MAKE_AGAIN}") from error
    if of_model != model:
        raise BadInput(f"{path}: embeddings of model {of_model}, expected {model}; {MAKE_AGAIN}")
    return Embedded(rows_N, embeddings_ND, model)
