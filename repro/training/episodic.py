"""Meta-training of any method that asks for batches: one backbone forward per step, the method's own loss.

Dimensions: N images of a step, T tasks, C classes, K shots, Q queries, B free images, D features.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from torch import Tensor, nn

from repro.data.batches import EpisodeBatches, EpisodeRows
from repro.data.dataset import Dataset
from repro.data.loading import ImageStore
from repro.data.seeding import generator
from repro.errors import BadInput
from repro.methods.base import EmbeddedBatch, Method
from repro.models.device import PLAIN, Acceleration
from repro.training.augment import NO_AUGMENTATION, Augmentation
from repro.training.distributed import ALONE, World
from repro.training.embedding import Embedder, FrozenEmbedder, LiveEmbedder
from repro.training.loop import Training
from repro.training.optim import Optimisation

# Whether batch norm uses the statistics of the step's images, or those that pre-training collected.
BATCH_NORM = ("eval", "train")


def embedded_batch(embeddings_ND: Tensor, drawn: EpisodeRows) -> EmbeddedBatch:
    """Cut a step's embeddings, in the order of the draw's rows, into support, queries and free images."""
    support_ND, query_ND, free_BD = embeddings_ND.split(
        [drawn.support_TCK.numel(), drawn.query_TCQ.numel(), drawn.free_B.numel()]
    )
    dim = embeddings_ND.shape[-1]
    return EmbeddedBatch(
        support_TCKD=support_ND.view(*drawn.support_TCK.shape, dim),
        query_TCQD=query_ND.view(*drawn.query_TCQ.shape, dim),
        labels_TC=drawn.labels_TC.to(embeddings_ND.device),
        free_BD=free_BD,
        free_labels_B=drawn.free_labels_B.to(embeddings_ND.device),
    )


class _MetaLearning:
    """The method's own objective."""

    def __init__(self, model: Method, batch_norm: str, seed: int) -> None:
        self.model, self.batch_norm, self.seed = model, batch_norm, seed

    def groups(self) -> list[dict[str, Any]]:
        return self.model.parameter_groups()

    def training_mode(self) -> None:
        self.model.train()
        for module in self.model.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.train(self.batch_norm == "train")

    def loss(self, embeddings_ND: Tensor, drawn: EpisodeRows, step: int) -> Tensor:
        return self.model.loss(embedded_batch(embeddings_ND, drawn), generator(self.seed, "loss", step))


def meta_train(
    method: Method,
    dataset: Dataset,
    optimisation: Optimisation,
    *,
    shot: int,
    steps: int,
    seed: int,
    validate: Callable[[Method], float] | None,
    validate_every: int,
    batch_norm: str = "eval",
    augmentation: Augmentation = NO_AUGMENTATION,
    acceleration: Acceleration = PLAIN,
    world: World = ALONE,
) -> Training:
    """Prepare meta-training on the training images; iterating the result trains (see `Training`).

    Where no backbone weight learns, every training image is embedded once, in evaluation mode and without augmentation.
    """
    if (spec := method.batch_spec(shot)) is None:
        raise BadInput(f"{type(method).__name__} has nothing to train after pre-training; leave meta-training out")
    if batch_norm not in BATCH_NORM:
        raise BadInput(f"batch_norm {batch_norm!r} is unknown; expected one of {', '.join(BATCH_NORM)}")
    draws = EpisodeBatches(dataset, **asdict(spec), seed=seed)
    acceleration.place(method, world.device)
    world.align(method)
    if batch_norm == "train":
        world.share_batch_norm(method.backbone)  # a head sees the whole batch on every process
    store = ImageStore(dataset.images_NHWC, world.device)
    embedder: Embedder
    if any(parameter.requires_grad for parameter in method.backbone.parameters()):
        embedder = LiveEmbedder(
            method.backbone, store, augmentation=augmentation, acceleration=acceleration, world=world, seed=seed
        )
    else:
        embedder = FrozenEmbedder(method.backbone, store, dataset.roles["train"], world)
    return Training(
        _MetaLearning(method, batch_norm, seed),
        draws,
        embedder,
        optimisation,
        steps=steps,
        seed=seed,
        world=world,
        amp_scaler=acceleration.scaler(world.device),
        validate=validate,
        validate_every=validate_every,
        settings={
            "training": "meta-train",
            "dataset": dataset.header.name,
            "method": type(method).__name__,
            "shot": shot,
            "batch": asdict(spec),
            "batch_norm": batch_norm,
            "augmentation": asdict(augmentation),
            "acceleration": asdict(acceleration),
        },
    )
