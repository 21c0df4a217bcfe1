"""Named sets of hyper-parameters: the paper's, the released code's, and those of the embedded benchmark.

`method` holds the options that a preset gives to CASTLE and aCASTLE. Numbers that the paper leaves open are marked.
"""

from dataclasses import dataclass, field

from repro.training.augment import NO_AUGMENTATION, Augmentation
from repro.training.optim import Cosine, Decay, Milestones, OneCycle, Optimisation


@dataclass(frozen=True)
class PretrainingPreset:
    """Arguments of `Pretrained` (classifier and its options) and `pretrain`."""

    optimisation: Optimisation
    epochs: int
    batch: int
    classifier: str
    classifier_options: dict[str, float] = field(default_factory=dict)
    label_smoothing: float = 0.0
    augmentation: Augmentation = NO_AUGMENTATION


@dataclass(frozen=True)
class MetaTrainingPreset:
    """Arguments of `meta_train`, and options of the method."""

    optimisation: Optimisation
    steps: int
    validate_every: int
    batch_norm: str
    augmentation: Augmentation
    method: dict[str, str | bool | int | float]


PRETRAINING = {
    # "Pre-training strategy": SGD, initial lr 0.1, momentum 0.9. Open in the paper: epochs, batch, decay of lr and
    # weights, augmentation (ours: what is common for ResNet-12 on MiniImageNet).
    "paper": PretrainingPreset(
        Optimisation(0.1, Milestones(at=(0.5, 0.75, 0.9)), nesterov=True, weight_decay=5e-4),
        epochs=200,
        batch=128,
        classifier="linear",
        augmentation=Augmentation(crop_padding=8, flip=True, jitter=0.4),
    ),
    # 28×28 glyphs, ConvNet-4 of 16/32/64/64: about 7 s per epoch of 19,200 images on one CPU core.
    "embedded": PretrainingPreset(
        Optimisation(0.2, OneCycle(), weight_decay=1e-3),
        epochs=4,
        batch=128,
        classifier="normalised",
        classifier_options={"temperature": 0.5},
        label_smoothing=0.1,
    ),
}

META_TRAINING = {
    # "Feature network specification": momentum SGD, lr 1e-4, halved every 2,000 mini-batches; 24 classes, 64 tasks,
    # 128 queries. Open in the paper: number of steps, when to validate, batch norm, augmentation.
    "paper": MetaTrainingPreset(
        Optimisation(1e-4, Decay(every=2000, factor=0.5)),
        steps=10_000,
        validate_every=500,
        batch_norm="train",
        augmentation=Augmentation(crop_padding=8, flip=True, jitter=0.4),
        method={"classes": 24, "classifiers": 64, "queries": 128},
    ),
    # The commands of the release: 16 classes, 256 tasks, lr 2e-4; its schedule of "every 10 epochs" is stepped per
    # batch, and its optimiser leaves the seen classifier out.
    "released": MetaTrainingPreset(
        Optimisation(2e-4, Decay(every=10, factor=0.1)),
        steps=10_000,
        validate_every=500,
        batch_norm="train",
        augmentation=Augmentation(crop_padding=8, flip=True, jitter=0.4),
        method={
            "classes": 16,
            "classifiers": 256,
            "queries": 128,
            "dictionary": "released",
            "train_seen_classifier": False,
        },
    ),
    # About 8 s on one CPU core at 1 shot.
    "embedded": MetaTrainingPreset(
        Optimisation(3e-3, Cosine()),
        steps=120,
        validate_every=40,
        batch_norm="eval",
        augmentation=NO_AUGMENTATION,
        method={"classes": 24, "classifiers": 64, "queries": 128, "temperature": 0.5, "dictionary_lr_scale": 10.0},
    ),
}
