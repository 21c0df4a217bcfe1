"""`python -m stages train CELL [--seed N]`: meta-train one method from a pre-trained backbone.

`train experiment` trains what params.yaml begins with.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro import paths
from repro.data.dataset import Dataset, open_dataset
from repro.data.episodes import read_tasks
from repro.evaluation.validation import FEW_SHOT, HM, Validation
from repro.files import SEAL, sha256, whole_folder
from repro.methods.base import Method
from repro.models.device import use_cpu
from repro.options import checked
from repro.trained.building import start_method
from repro.trained.folders import FEW_SHOT as FEW_SHOT_MODEL
from repro.trained.folders import WEIGHTS, Card, check_model, write_model
from repro.training.checkpoints import own_checkpoints
from repro.training.distributed import World, process_group
from repro.training.episodic import meta_train
from repro.training.loop import Training
from repro.training.optim import Optimisation
from stages.origins import write_origin
from stages.settings.files import read_settings
from stages.settings.kinds import TrainSettings
from stages.shown import attach_curve, said, train_shown
from stages.tracking import Log, bad_input_exits, of_seed, record


@dataclass(frozen=True)
class Prepared:
    """A method ready to be trained; `training` is None where it has nothing to train.

    `inputs` is what the result depends on besides the loop's own settings.
    """

    card: Card
    method: Method
    data: Dataset
    validation: Validation
    training: Training | None
    inputs: dict[str, Any]


def train(settings: TrainSettings, log: Log) -> dict[str, Any]:
    """Train where the method has a training, keep the weights with the best HM on validation tasks, and embed once."""
    use_cpu(settings.threads)
    result: dict[str, Any] = {}
    checkpoints = paths.checkpoints(settings.cell, settings.seed)
    with process_group(settings.machine.device) as world:
        ready = prepare(settings, world)
        with own_checkpoints(checkpoints, world):
            if ready.training:
                result |= train_shown(
                    ready.training,
                    settings.cell,
                    HM,
                    checkpoints,
                    inputs=ready.inputs,
                    checkpoint_every=settings.machine.checkpoint_every,
                    log=log,
                )
            if world.rank == 0:
                with whole_folder(paths.model(settings.cell, settings.seed)) as folder:
                    if ready.training:
                        attach_curve(folder / "curve.csv", ready.training, HM, log)
                        write_few_shot(folder / FEW_SHOT_MODEL, ready, settings.seed, world)
                    write_model(folder, ready.method, ready.card, ready.data, world.device, settings.seed)
                    result |= write_origin(folder, "train", settings.cell, settings, sha256(folder / WEIGHTS))
                print(said(settings.cell, ready.training, "validation HM"))
    return result


def write_few_shot(folder: Path, ready: Prepared, seed: int, world: World) -> None:
    """Write the weights that few-shot use would have chosen, where they are others than HM's; HM's stay installed."""
    training = ready.training
    if training and training.bests[FEW_SHOT].step != training.bests[HM].step:
        folder.mkdir()
        training.install_best(FEW_SHOT)
        write_model(folder, ready.method, ready.card, ready.data, world.device, seed)
        training.install_best(HM)


def prepare(settings: TrainSettings, world: World) -> Prepared:
    """The method on its pre-trained backbone, and its meta-training ready to run."""
    data = open_dataset(paths.dataset(settings.dataset, settings.seed))
    start = paths.pretrained(settings.pretrained, settings.seed)
    given = inputs(settings)
    card, method = start_method(start, settings.method, settings.options, settings.seed)
    tasks = read_tasks(paths.tasks(settings.dataset, "val", settings.selection.way, settings.shot, settings.seed))
    memory = settings.machine.memory_mb
    validation = Validation(
        data, tasks, settings.selection.tasks, method.remembers, memory, world.device, settings.seed
    )
    if settings.training is None:
        return Prepared(card, method, data, validation, None, given)
    chosen = settings.training
    if card.left_out:
        optimisation = checked(Optimisation, card.left_out["optimisation"], f"the card of {settings.pretrained}")
        chosen = chosen.from_random_weights(card.left_out["steps"], optimisation)
    training = meta_train(
        method,
        data,
        chosen,
        shot=settings.shot,
        seed=settings.seed,
        validate=validation,
        acceleration=settings.precision,
        world=world,
    )
    return Prepared(card, method, data, validation, training, given)


def inputs(settings: TrainSettings) -> dict[str, Any]:
    """What a training reads, by its content, and the method's options; raises BadInput where it was damaged."""
    return {
        "options": settings.options,
        "dataset": sha256(paths.dataset(settings.dataset, settings.seed) / SEAL),
        "pretrained": check_model(paths.pretrained(settings.pretrained, settings.seed)),
    }


if __name__ == "__main__":
    with bad_input_exits():
        settings = read_settings(TrainSettings, sys.argv[1:])
    record(train, settings, stage="train", cell=of_seed(settings.cell, settings.seed))
