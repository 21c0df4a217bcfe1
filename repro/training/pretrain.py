"""Pre-training (paper, "Pre-training strategy"): classify all seen classes, keep the epoch with the best prototypes.

It gives every method its backbone and its many-shot classifiers.
Dimensions: N images, D features, S seen classes.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch.nn.functional as F
from pydantic import with_config
from torch import Tensor

from repro.data.batches import ShuffledBatches, ShuffledRows
from repro.data.dataset import Dataset
from repro.data.loading import ImageStore
from repro.errors import BadInput
from repro.models.device import PLAIN, Acceleration
from repro.models.pretrained import Pretrained
from repro.options import STRICT
from repro.training.augment import NO_AUGMENTATION, Augmentation
from repro.training.distributed import ALONE, World
from repro.training.embedding import LiveEmbedder
from repro.training.loop import Training
from repro.training.optim import Optimisation


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class Pretraining(Optimisation):
    """So many epochs of momentum SGD; `batch` is the global batch of all processes."""

    epochs: int
    batch: int
    label_smoothing: float = 0.0
    augmentation: Augmentation = NO_AUGMENTATION

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.epochs, self.batch) < 1 or not 0 <= self.label_smoothing < 1:
            raise BadInput(
                f"epochs={self.epochs}, batch={self.batch}, label_smoothing={self.label_smoothing}: "
                "expected at least 1 of the first two, and a share below 1"
            )


class _SeenClassification:
    """Cross-entropy over all seen classes."""

    def __init__(self, model: Pretrained, label_smoothing: float) -> None:
        self.model, self.label_smoothing = model, label_smoothing

    def groups(self) -> list[dict[str, Any]]:
        return [{"name": "all", "params": list(self.model.parameters()), "lr_scale": 1.0}]

    def training_mode(self) -> None:
        self.model.train()

    def loss(self, embeddings_ND: Tensor, drawn: ShuffledRows, step: int) -> Tensor:
        labels_N = drawn.labels_N.to(embeddings_ND.device)
        return F.cross_entropy(self.model.classifier(embeddings_ND), labels_N, label_smoothing=self.label_smoothing)


def pretrain(
    model: Pretrained,
    dataset: Dataset,
    pretraining: Pretraining,
    *,
    seed: int,
    validate: Callable[[Pretrained], Mapping[str, float]] | None,
    acceleration: Acceleration = PLAIN,
    world: World = ALONE,
) -> Training:
    """Prepare pre-training on the training images; iterating the result trains (see `Training`).

    Batch norm uses the statistics of the global batch. `validate` is asked after every epoch.
    """
    draws = ShuffledBatches(dataset, pretraining.batch, seed)
    acceleration.place(model, world.device)
    world.align(model)
    world.share_batch_norm(model)
    store = ImageStore(dataset.images_NHWC, world.device)
    return Training(
        _SeenClassification(model, pretraining.label_smoothing),
        draws,
        LiveEmbedder(
            model.backbone,
            store,
            augmentation=pretraining.augmentation,
            acceleration=acceleration,
            world=world,
            seed=seed,
        ),
        pretraining,
        steps=pretraining.epochs * draws.per_epoch,
        seed=seed,
        world=world,
        amp_scaler=acceleration.scaler(world.device),
        validate=validate,
        validate_every=draws.per_epoch,
        settings={
            "training": "pretrain",
            "dataset": dataset.header.name,
            "classifier": type(model.classifier).__name__,
            "acceleration": asdict(acceleration),
        },
    )
