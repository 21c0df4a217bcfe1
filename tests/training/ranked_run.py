"""Both kinds of training, in as many processes as `torchrun` starts: ... -m tests.training.ranked_run DATASET FILE.

The first process writes losses and validations of all trainings to FILE.
"""

import json
import sys
from pathlib import Path

import torch

from repro.data.dataset import Dataset, open_dataset
from repro.training.augment import Augmentation
from repro.training.distributed import World, process_group
from repro.training.loop import Training, run
from repro.training.optim import Optimisation, Schedule
from tests.training.small import small_meta_training, small_pretraining


def trainings(dataset: Dataset, world: World) -> dict[str, Training]:
    """Odd batch sizes, so that shares differ; no dropout, whose draws differ per process.

    Rates are moderate: rounding flips a max-pool tie now and then, and large ones would make much of that.
    """
    augmentation = Augmentation(crop_padding=1, jitter=0.2)
    moderate = Optimisation(0.02, Schedule("one_cycle"), weight_decay=1e-3)
    return {
        "pretrain": small_pretraining(
            dataset, world=world, dropout=0.0, augmentation=augmentation, optimisation=moderate
        ),
        "meta, batch norm train": small_meta_training(dataset, world=world, dropout=0.0, augmentation=augmentation),
        "meta, batch norm eval": small_meta_training(dataset, world=world, dropout=0.0, batch_norm="eval"),
        "meta, frozen": small_meta_training(dataset, world=world, dropout=0.0, batch_norm="eval", frozen=True),
    }


def histories(dataset: Dataset, world: World, folder: Path) -> dict[str, dict[str, list[float]]]:
    """Loss, lr and validation of every step of every training; each is stopped and resumed once on its way."""
    for name, training in trainings(dataset, world).items():
        for metrics in run(training, folder / name, checkpoint_every=4):
            if metrics.step == 9:
                break
    world.agree(0.0)  # wait until the first process has written its last checkpoint
    resumed = trainings(dataset, world)
    for name, training in resumed.items():
        list(run(training, folder / name, checkpoint_every=100))
    return {name: training.history for name, training in resumed.items()}


def main(dataset: Path, file: Path) -> None:
    torch.set_num_threads(1)
    with process_group("cpu") as world:
        found = histories(open_dataset(dataset), world, file.parent)
        if world.rank == 0:
            file.write_text(json.dumps({"processes": world.size, "histories": found}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
