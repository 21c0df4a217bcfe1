"""Whole trainings against a bare loop that passes the same number of images forward and backward, and does no more.

Ours draws, fetches, augments, computes the method's loss and updates the weights; the bare loop has one ready batch and
a linear classifier, and leaves the weights alone. Both have the same network, memory layout, precision and one thread.
The ratio is the share of the bare loop's speed that a training has; `bf16_…` compares CASTLE's training in that number
format with the same in float32. At 28 px it is the embedded benchmark's narrow
ConvNet-4 on gray images, at 32 px a ConvNet-4 of 64, 64, 128 and 256 channels on colour with shifted, mirrored crops.
"""

import copy
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from repro.data.dataset import ClassInfo, Dataset, Header
from repro.data.loading import normalise
from repro.data.pixels import PixelsInMemory
from repro.methods.castle import Castle
from repro.models import create_backbone
from repro.models.device import PLAIN, Acceleration
from repro.models.pretrained import Pretrained
from repro.training.augment import NO_AUGMENTATION, Augmentation
from repro.training.episodic import MetaTraining, meta_train
from repro.training.loop import Training
from repro.training.pretrain import Pretraining, pretrain
from tools.benchmarks.timing import interleaved, threads

SEEN, PER_CLASS, STEPS, BATCH = 64, 300, 5, 128
MANY = 10**6  # steps: a training that does not end while it is measured
CROPS = Augmentation(crop_padding=4, flip=True)
BF16 = Acceleration(amp="bf16")
Case = tuple[Training, nn.Module, np.ndarray]  # the training, its backbone, and the images of one step


def bench_training(name: str, repeats: int) -> dict[str, float]:
    """Medians over interleaved repeats, in seconds of a few steps: ours_s, reference_s and ratio."""
    torch.manual_seed(0)
    with threads(1):
        training, backbone, images_NHWC = CASES[name]()
        steps = iter(training)
        drawn = normalise(torch.from_numpy(images_NHWC).permute(0, 3, 1, 2))
        return interleaved(
            lambda: [next(steps) for _ in range(STEPS)],
            bare_loop(copy.deepcopy(backbone).train(), drawn, STEPS),
            repeats,
        )


def bench_bf16(name: str, repeats: int) -> dict[str, float]:
    """The same of a training in bf16, the reference being the one in float32."""
    torch.manual_seed(0)
    with threads(1):
        ours, reference = (iter(BF16_CASES[name](acceleration)[0]) for acceleration in (BF16, PLAIN))
        return interleaved(
            lambda: [next(ours) for _ in range(STEPS)], lambda: [next(reference) for _ in range(STEPS)], repeats
        )


def bare_loop(backbone: nn.Module, images_NCHW: Tensor, steps: int) -> Callable[[], None]:
    """So many passes of these images, forward and backward."""
    labels_N = torch.arange(len(images_NCHW)) % SEEN
    classifier_SD = torch.randn(SEEN, backbone(images_NCHW).shape[1])

    def run() -> None:
        for _ in range(steps):
            backbone.zero_grad()
            F.cross_entropy(backbone(images_NCHW) @ classifier_SD.T, labels_N).backward()

    return run


def random_images(size: int, channels: int) -> Dataset:
    """Seen classes only, of random pixels."""
    labels_N = torch.arange(SEEN).repeat_interleave(PER_CLASS)
    pixels = np.random.default_rng(0).integers(0, 256, (len(labels_N), size, size, channels), dtype=np.uint8)
    header = Header("random", tuple(ClassInfo(f"class {label}", "seen") for label in range(SEEN)), ("none",), "none")
    roles = {"train": torch.arange(len(labels_N))}
    return Dataset(header, PixelsInMemory(pixels), labels_N, torch.zeros_like(labels_N), roles)


def castle_28px(acceleration: Acceleration = PLAIN) -> Case:
    """CASTLE's training on the embedded benchmark."""
    backbone, dim = create_backbone("castle_convnet4_small", 1)
    return _castle(backbone, dim, random_images(28, 1), NO_AUGMENTATION, acceleration)


def castle_32px(acceleration: Acceleration = PLAIN) -> Case:
    """CASTLE's training on small photographs."""
    backbone, dim = create_backbone("castle_convnet4", 3, widths=(64, 64, 128, 256))
    return _castle(backbone, dim, random_images(32, 3), CROPS, acceleration)


def pretraining_28px() -> Case:
    """Pre-training on the embedded benchmark."""
    backbone, dim = create_backbone("castle_convnet4_small", 1)
    model = Pretrained(backbone, dim, SEEN, "normalised")
    settings = Pretraining(lr=0.1, epochs=MANY, batch=BATCH, label_smoothing=0.1, weight_decay=1e-3)
    dataset = random_images(28, 1)
    return pretrain(model, dataset, settings, seed=0, validate=None), backbone, dataset.images_NHWC[:BATCH]


def _castle(
    backbone: nn.Module, dim: int, dataset: Dataset, augmentation: Augmentation, acceleration: Acceleration
) -> Case:
    method = Castle(backbone, dim, SEEN)
    settings = MetaTraining(
        lr=0.05, steps=MANY, validate_every=MANY, batch_norm="train", augmentation=augmentation, weight_decay=5e-4
    )
    training = meta_train(method, dataset, settings, shot=1, seed=0, validate=None, acceleration=acceleration)
    return training, backbone, dataset.images_NHWC[: method.classes + method.queries]


CASES: dict[str, Callable[[], Case]] = {
    "train_castle_28px": castle_28px,
    "train_castle_32px": castle_32px,
    "pretrain_28px": pretraining_28px,
}
BF16_CASES: dict[str, Callable[[Acceleration], Case]] = {"bf16_28px": castle_28px, "bf16_32px": castle_32px}
