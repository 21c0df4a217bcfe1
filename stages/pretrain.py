"""`python -m stages pretrain NAME --dataset … --classifier …`: fit a backbone and its many-shot classifier.

dvc.yaml writes the command out for every backbone of paper/grid.yaml (`_arguments.py` reads it).
"""

import sys
from dataclasses import asdict, replace
from typing import Any

import torch

from repro import paths
from repro.data.dataset import HEADER, Dataset, open_dataset
from repro.data.episodes import Tasks, read_tasks
from repro.data.loading import ImageStore
from repro.files import sha256
from repro.models.device import Acceleration
from repro.models.pretrained import Pretrained
from repro.training.checkpoints import own_checkpoints
from repro.training.distributed import World, joined
from repro.training.loop import Training
from repro.training.pretrain import pretrain
from repro.training.prototypes import prototype_accuracy
from stages._experiment import Experiment, Run, bad_input_exits, prepare, run
from stages._params import Machine, PretrainingSettings, read_params
from stages._processes import in_processes
from stages.shared.models import Card, build_pretrained, write_model
from stages.shared.pretraining import pretraining_config
from stages.shared.training import augmentation_from, optimisation_from, train_shown

ex = prepare(Experiment("pretrain"))
MEASURE = "val_prototype_accuracy"


@ex.main
@in_processes
def main(
    name: str,
    dataset: str,
    backbone: dict[str, Any],
    classifier: dict[str, Any],
    epochs: int,
    random: bool,
    pretraining: dict[str, Any],
    selection: dict[str, int],
    precision: dict[str, Any],
    machine: dict[str, Any],
    threads: int,
    seed: int,
    _run: Run,
) -> dict[str, float]:
    """Train unless `random`, keep the epoch with the best nearest-prototype accuracy, and embed every image once."""
    torch.set_num_threads(threads)
    data, computer = open_dataset(paths.dataset(dataset)), Machine(**machine)
    card = Card(
        dataset=dataset,
        backbone=backbone["name"],
        backbone_options=backbone["options"],
        channels=data.image_shape[2],
        seen_classes=data.seen_classes,
        classifier=classifier["name"],
        classifier_options=classifier["options"],
    )
    model = build_pretrained(card, seed)
    with joined(computer.device) as world, own_checkpoints(paths.checkpoints(name), world):
        result = {}
        tasks = read_tasks(paths.tasks(dataset, "val", **selection))
        params, acceleration = PretrainingSettings(**pretraining), Acceleration(**precision)
        training = _training(model, data, tasks, epochs, params, acceleration, world, seed)
        if random:
            card = replace(card, left_out={"steps": training.steps, "optimisation": pretraining["optimisation"]})
        else:
            result = train_shown(
                training,
                name,
                MEASURE,
                paths.pretrained(name) / "curve.csv",
                inputs={"card": asdict(card), "dataset": sha256(paths.dataset(dataset) / HEADER)},
                checkpoint_every=computer.checkpoint_every,
                log=_run,
            )
        if world.rank == 0:
            write_model(paths.pretrained(name), model, card, data, world.device, seed)
    return result


def _training(
    model: Pretrained,
    data: Dataset,
    tasks: Tasks,
    epochs: int,
    params: PretrainingSettings,
    acceleration: Acceleration,
    world: World,
    seed: int,
) -> Training:
    store = ImageStore(data.images_NHWC, world.device)
    return pretrain(
        model,
        data,
        optimisation_from(params.optimisation),
        epochs=epochs,
        batch=params.batch,
        seed=seed,
        validate=lambda one: prototype_accuracy(one.backbone, store, tasks.support_TWK, tasks.query_TWQ),
        label_smoothing=params.label_smoothing,
        augmentation=augmentation_from(params.augmentation),
        acceleration=acceleration,
        world=world,
    )


if __name__ == "__main__":
    with bad_input_exits():
        params = read_params(paths.PARAMS)
        config = pretraining_config(sys.argv, params)
    run(ex, config, stage="pretrain", cell=config["name"])
