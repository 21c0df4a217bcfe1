"""Meta-training of any method that asks for batches: one backbone forward per step, the method's own loss.

Dimensions: N images of a step, T tasks, C classes, K shots, Q queries, B free images, D features.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from pydantic import with_config
from torch import Tensor, nn

from repro.data.batches import EpisodeBatches, EpisodeRows
from repro.data.dataset import Dataset
from repro.data.loading import ImageStore
from repro.data.seeding import generator
from repro.errors import BadInput
from repro.methods.base import EmbeddedBatch, Method
from repro.models.device import PLAIN, Acceleration
from repro.options import STRICT
from repro.training.augment import NO_AUGMENTATION, Augmentation
from repro.training.distributed import ALONE, World
from repro.training.embedding import Embedder, FrozenEmbedder, LiveEmbedder
from repro.training.loop import Training
from repro.training.optim import Optimisation


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class MetaTraining(Optimisation):
    """So many steps of momentum SGD, validated at intervals.

    `batch_norm` says whether it uses the statistics of the step's images (train) or those of pre-training (eval).
    """

    steps: int
    validate_every: int
    batch_norm: Literal["eval", "train"] = "eval"
    augmentation: Augmentation = NO_AUGMENTATION

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.steps, self.validate_every) < 1:
            raise BadInput(f"steps={self.steps}, validate_every={self.validate_every}: expected at least 1 of both")

    def from_random_weights(self, steps: int, optimisation: Optimisation) -> "MetaTraining":
        """The same training without pre-training, whose steps and optimiser join in; batch norm learns too.

        Validation comes as often in all. Meta-training's own steps and rate would leave random weights random.
        """
        total = self.steps + steps
        return replace(
            self,
            steps=total,
            validate_every=math.ceil(total * self.validate_every / self.steps),
            batch_norm="train",
            **{name: getattr(optimisation, name) for name in optimisation.own_values()},
        )


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
    training: MetaTraining,
    *,
    shot: int,
    seed: int,
    validate: Callable[[Method], Mapping[str, float]] | None,
    acceleration: Acceleration = PLAIN,
    world: World = ALONE,
) -> Training:
    """Prepare meta-training on the training images; iterating the result trains (see `Training`).

    Where no backbone weight learns, every training image is embedded once, in evaluation mode and without augmentation.
    """
    if (spec := method.batch_spec(shot)) is None:
        raise BadInput(f"{type(method).__name__} has nothing to train after pre-training; leave meta-training out")
    draws = EpisodeBatches(dataset, **asdict(spec), seed=seed)
    acceleration.place(method, world.device)
    world.align(method)
    if training.batch_norm == "train":
        world.share_batch_norm(method.backbone)  # a head sees the whole batch on every process
    store = ImageStore(dataset.images_NHWC, world.device)
    embedder: Embedder
    if any(parameter.requires_grad for parameter in method.backbone.parameters()):
        embedder = LiveEmbedder(
            method.backbone,
            store,
            augmentation=training.augmentation,
            acceleration=acceleration,
            world=world,
            seed=seed,
        )
    else:
        embedder = FrozenEmbedder(method.backbone, store, dataset.roles["train"], world)
    return Training(
        _MetaLearning(method, training.batch_norm, seed),
        draws,
        embedder,
        training,
        steps=training.steps,
        seed=seed,
        world=world,
        amp_scaler=acceleration.scaler(world.device),
        validate=validate,
        validate_every=training.validate_every,
        settings={
            "training": "meta-train",
            "dataset": dataset.header.name,
            "method": type(method).__name__,
            "shot": shot,
            "batch": asdict(spec),
            "acceleration": asdict(acceleration),
        },
    )
