"""The embeddings of a training step: one backbone forward over all its images, or a look-up where it cannot change.

Dimensions: N images of the step, C channels, H height, W width, D features, M training images.
"""

from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor, nn

from repro.data.batches import Draws
from repro.data.loading import Draw, ImageStore, fetched, normalise
from repro.data.seeding import generator
from repro.models.device import Acceleration
from repro.training.augment import Augmentation
from repro.training.distributed import World


class Embedder(Protocol):
    """Prepares what each step needs, then turns it into embeddings."""

    def batches(self, draws: Draws, steps: range) -> Iterator[tuple[int, Draw, Tensor]]:
        """Yield (step, draw, whatever `__call__` wants)."""
        ...

    def __call__(self, prepared: Tensor, images: int, step: int) -> Tensor:
        """The step's embeddings, `images`×D in the order of the draw's rows, float32."""
        ...


class LiveEmbedder:
    """One forward of the step's augmented images; every process of the world embeds its share."""

    def __init__(
        self,
        backbone: nn.Module,
        store: ImageStore,
        *,
        augmentation: Augmentation,
        acceleration: Acceleration,
        world: World,
        seed: int,
    ) -> None:
        self.backbone = torch.compile(backbone) if acceleration.compile else backbone
        self.store, self.augmentation, self.acceleration = store, augmentation, acceleration
        self.world, self.seed = world, seed

    def batches(self, draws: Draws, steps: range) -> Iterator[tuple[int, Draw, Tensor]]:
        """See `Embedder`: this process's share of the images, as bytes on the device."""
        return fetched(self.store, draws.draw, self.world.share, steps)

    def __call__(self, prepared: Tensor, images: int, step: int) -> Tensor:
        """See `Embedder`."""
        draws_NP = self.augmentation.draw(images, generator(self.seed, "augmentation", step))
        images_NCHW = normalise(self.augmentation(prepared, self.world.share(draws_NP)))
        with self.acceleration.autocast(self.world.device):
            share_ND = self.backbone(images_NCHW)
        return self.world.gather(share_ND.float(), images)


class FrozenEmbedder:
    """Embeddings of a backbone that does not learn: every training image once, without augmentation."""

    def __init__(self, backbone: nn.Module, store: ImageStore, rows_M: Tensor, world: World) -> None:
        self.backbone, self.store, self.rows_M, self.world = backbone, store, rows_M, world

    def batches(self, draws: Draws, steps: range) -> Iterator[tuple[int, Draw, Tensor]]:
        """See `Embedder`: the embeddings themselves."""
        share_MD = embed_rows(self.backbone, self.store, self.world.share(self.rows_M))
        table_MD = self.world.gather(share_MD, len(self.rows_M))
        place_of_row = torch.zeros(int(self.rows_M.max()) + 1, dtype=torch.long)
        place_of_row[self.rows_M] = torch.arange(len(self.rows_M))
        for step in steps:
            drawn = draws.draw(step)
            yield step, drawn, table_MD[place_of_row[drawn.rows_N].to(table_MD.device)]

    def __call__(self, prepared: Tensor, images: int, step: int) -> Tensor:
        """See `Embedder`."""
        return prepared


@torch.no_grad()
def embed_rows(backbone: nn.Module, store: ImageStore, rows_N: Tensor, batch: int = 512) -> Tensor:
    """Embeddings (N×D, float32) of these rows with the backbone in evaluation mode; its mode is put back."""
    training = backbone.training
    backbone.eval()
    embeddings = [backbone(normalise(store.fetch(rows))).float() for rows in rows_N.split(batch)]
    backbone.train(training)
    return torch.cat(embeddings)
