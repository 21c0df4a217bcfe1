"""A small network, a small method and short trainings of them, for the tests of this folder."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from repro.data.dataset import Dataset
from repro.data.loading import ImageStore
from repro.methods.base import BatchSpec, EmbeddedBatch, FixedSeen
from repro.models.pretrained import Pretrained
from repro.training.distributed import ALONE, World
from repro.training.episodic import MetaTraining, meta_train
from repro.training.loop import Training
from repro.training.optim import Optimisation, Schedule
from repro.training.pretrain import Pretraining, pretrain
from repro.training.prototypes import prototype_accuracy

DIM = 16


def small_backbone(dropout: float = 0.0) -> nn.Module:
    """Two convolutions with batch norm, average-pooled to 16 features."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, DIM, 3, padding=1, bias=False),
        nn.BatchNorm2d(DIM),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


class Swap(FixedSeen):
    """Prototypes swapped in for the seen classifiers of random halves of the batch's classes."""

    def __init__(self, backbone: nn.Module, seen_classes: int, *, classes: int = 6, dropout: float = 0.0) -> None:
        super().__init__()
        self.backbone, self.seen_classes, self.classes = backbone, seen_classes, classes
        self.seen_weight_SD = nn.Parameter(torch.randn(seen_classes, DIM))
        self.norm = nn.BatchNorm1d(DIM, affine=False, track_running_stats=False)  # in the head, as in L2ML
        self.dropout = nn.Dropout(dropout)

    def fixed_seen_logits(self, queries_ND: Tensor) -> Tensor:
        return queries_ND @ F.normalize(self.seen_weight_SD, dim=-1).T

    def joint_unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        return queries_TQD @ F.normalize(support_TWKD.mean(dim=2), dim=-1).mT

    def batch_spec(self, shot: int) -> BatchSpec:
        return BatchSpec(classes=self.classes, shot=shot, queries=1, free=21)

    def loss(self, batch: EmbeddedBatch, generator: torch.Generator) -> Tensor:
        support_CKD, labels_C = batch.support_TCKD[0], batch.labels_TC[0]
        some = torch.randperm(len(labels_C), generator=generator)[: len(labels_C) // 2]
        prototypes_WD = self.dropout(F.normalize(self.norm(support_CKD[some].mean(dim=1)), dim=-1))
        rows_SD = F.normalize(self.seen_weight_SD, dim=-1).index_copy(0, labels_C[some], prototypes_WD)
        queries_BD = torch.cat([batch.free_BD, batch.query_TCQD[0, :, 0]])
        return F.cross_entropy(queries_BD @ rows_SD.T, torch.cat([batch.free_labels_B, labels_C]))

    def parameter_groups(self) -> list[dict[str, Any]]:
        backbone = [parameter for parameter in self.backbone.parameters() if parameter.requires_grad]
        return [
            {"name": "backbone", "params": backbone, "lr_scale": 1.0},
            {"name": "seen", "params": [self.seen_weight_SD], "lr_scale": 10.0},
        ]


def validation(dataset: Dataset) -> Callable[[Any], dict[str, float]]:
    """Nearest-prototype accuracy on a few fixed tasks of the validation classes; and its opposite, best elsewhere."""
    images_CN = dataset.roles["val"].view(len(dataset.labels_of("val")), -1)
    store = ImageStore(dataset.images_NHWC, torch.device("cpu"))
    support_TWK, query_TWQ = images_CN[:, :4].T.unsqueeze(-1), images_CN[:, 4:].expand(4, -1, -1)

    def validate(model: Any) -> dict[str, float]:
        accuracy = prototype_accuracy(model.backbone, store, support_TWK, query_TWQ)
        return {"accuracy": accuracy, "errors": 100 - accuracy}

    return validate


def small_pretraining(dataset: Dataset, *, world: World = ALONE, dropout: float = 0.1, **options: Any) -> Training:
    """Three epochs of six steps, validated after each."""
    torch.manual_seed(1)
    model = Pretrained(small_backbone(dropout), DIM, dataset.seen_classes)
    chosen = options.pop("optimisation", Optimisation(0.1, Schedule("one_cycle"), weight_decay=1e-3))
    values = {"epochs": 3, "batch": 31, "label_smoothing": 0.1, **vars(chosen)}
    settings = Pretraining(**values | _taken(options, Pretraining))
    return pretrain(model, dataset, settings, **{"seed": 7, "validate": validation(dataset), "world": world} | options)


def _taken(options: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    """Those of the options that are fields of the settings; they are options no more."""
    return {each.name: options.pop(each.name) for each in fields(kind) if each.name in options}


def small_meta_training(
    dataset: Dataset, *, world: World = ALONE, dropout: float = 0.1, frozen: bool = False, **options: Any
) -> Training:
    """Fourteen steps of 6 classes, 2 shots, validated every 5."""
    torch.manual_seed(2)
    method = Swap(small_backbone(dropout), dataset.seen_classes, dropout=dropout)
    method.backbone.requires_grad_(not frozen)
    chosen = options.pop("optimisation", Optimisation(0.05, Schedule("cosine"), clip=5.0))
    values = {"steps": 14, "validate_every": 5, "batch_norm": "train", **vars(chosen)}
    settings = MetaTraining(**values | _taken(options, MetaTraining))
    given: dict[str, Any] = {"shot": 2, "seed": 7, "validate": validation(dataset), "world": world}
    return meta_train(method, dataset, settings, **given | options)


TRAININGS: dict[str, Callable[..., Training]] = {"pretrain": small_pretraining, "meta": small_meta_training}
