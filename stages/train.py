"""`python -m stages train CELL [--seed N]`: meta-train one method from a pre-trained backbone.

`train experiment` trains what params.yaml begins with.
"""

import sys
from typing import Any

import torch

from repro import paths
from repro.data.dataset import Dataset, open_dataset
from repro.data.episodes import read_tasks
from repro.evaluation.validation import Validation
from repro.files import SEAL, sha256, whole_folder
from repro.methods.base import Method
from repro.options import checked
from repro.trained.building import start_method
from repro.trained.folders import WEIGHTS, Card, check_model, write_model
from repro.training.checkpoints import own_checkpoints
from repro.training.distributed import World, process_group
from repro.training.episodic import MetaTraining, meta_train
from repro.training.loop import Training
from repro.training.optim import Optimisation
from stages.origins import write_origin
from stages.settings.files import read_settings
from stages.settings.kinds import TrainSettings
from stages.shown import attach_curve, said, train_shown
from stages.tracking import Log, bad_input_exits, of_seed, record

MEASURE = "val_hm"


def train(settings: TrainSettings, log: Log) -> dict[str, Any]:
    """Train where the method has a training, keep the weights with the best HM on validation tasks, and embed once."""
    torch.set_num_threads(settings.threads)
    data = open_dataset(paths.dataset(settings.dataset, settings.seed))
    start = paths.pretrained(settings.pretrained, settings.seed)
    weights = check_model(start)
    card, method = start_method(start, settings.method, settings.options, settings.seed)
    result: dict[str, Any] = {}
    checkpoints = paths.checkpoints(settings.cell, settings.seed)
    with process_group(settings.machine.device) as world, own_checkpoints(checkpoints, world):
        training = meta_training(settings, settings.training, method, card, data, world) if settings.training else None
        if training:
            result |= train_shown(
                training,
                settings.cell,
                MEASURE,
                checkpoints,
                inputs={
                    "options": settings.options,
                    "dataset": sha256(paths.dataset(settings.dataset, settings.seed) / SEAL),
                    "pretrained": weights,
                },
                checkpoint_every=settings.machine.checkpoint_every,
                log=log,
            )
        if world.rank == 0:
            with whole_folder(paths.model(settings.cell, settings.seed)) as folder:
                if training:
                    attach_curve(folder / "curve.csv", training, MEASURE, log)
                write_model(folder, method, card, data, world.device, settings.seed)
                result |= write_origin(folder, "train", settings.cell, settings, sha256(folder / WEIGHTS))
            print(said(settings.cell, training, "validation HM"))
    return result


def meta_training(
    settings: TrainSettings, training: MetaTraining, method: Method, card: Card, data: Dataset, world: World
) -> Training:
    """The meta-training of a method, ready to run."""
    if card.left_out:
        optimisation = checked(Optimisation, card.left_out["optimisation"], f"the card of {settings.pretrained}")
        training = training.from_random_weights(card.left_out["steps"], optimisation)
    tasks = read_tasks(paths.tasks(settings.dataset, "val", settings.selection.way, settings.shot, settings.seed))
    memory = settings.machine.memory_mb
    return meta_train(
        method,
        data,
        training,
        shot=settings.shot,
        seed=settings.seed,
        validate=Validation(
            data, tasks, settings.selection.tasks, method.remembers, memory, world.device, settings.seed
        ),
        acceleration=settings.precision,
        world=world,
    )


if __name__ == "__main__":
    with bad_input_exits():
        settings = read_settings(TrainSettings, sys.argv[1:])
    record(train, settings, stage="train", cell=of_seed(settings.cell, settings.seed))
