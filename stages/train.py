"""`python -m stages train CELL --dataset … --method … --shot … --pretrained …`: meta-train one method from a backbone.

dvc.yaml writes the command out for every cell of paper/grid.yaml (`_arguments.py` reads it). `train experiment` takes
nothing else: params.yaml begins with what it trains.
"""

import sys
from typing import Any

import torch

from repro import paths
from repro.data.dataset import HEADER, Dataset, open_dataset
from repro.data.episodes import Tasks, draw_exemplars, read_tasks
from repro.evaluation.cell import mean_hm
from repro.evaluation.embed import Embedded, embed
from repro.files import sha256
from repro.methods.base import Method
from repro.methods.registry import method_class
from repro.models.device import Acceleration
from repro.training.checkpoints import own_checkpoints
from repro.training.distributed import World, joined
from repro.training.episodic import meta_train
from repro.training.loop import Training
from stages._experiment import Experiment, Run, bad_input_exits, prepare, run
from stages._params import Machine, TrainingParams, read_params
from stages._processes import in_processes
from stages.shared.configs import training_config
from stages.shared.methods import start_method
from stages.shared.models import check_model, write_model
from stages.shared.training import augmentation_from, optimisation_from, train_shown, without_pretraining

ex = prepare(Experiment("train"))
MEASURE = "val_hm"


@ex.main
@in_processes
def main(
    cell: str,
    dataset: str,
    method: str,
    shot: int,
    pretrained: str,
    options: dict[str, Any],
    training: dict[str, Any] | None,
    selection: dict[str, int],
    precision: dict[str, Any],
    machine: dict[str, Any],
    threads: int,
    seed: int,
    _run: Run,
) -> dict[str, float]:
    """Train where the method has a training, keep the weights with the best HM on validation tasks, and embed once."""
    torch.set_num_threads(threads)
    data, computer = open_dataset(paths.dataset(dataset)), Machine(**machine)
    weights = check_model(paths.pretrained(pretrained))
    card, model = start_method(paths.pretrained(pretrained), method, options, seed)
    result = {}
    with joined(computer.device) as world, own_checkpoints(paths.checkpoints(cell), world):
        if training is not None:
            params, acceleration = TrainingParams(**training), Acceleration(**precision)
            if card.left_out:
                params = without_pretraining(params, card.left_out)
            tasks = read_tasks(paths.tasks(dataset, "val", selection["way"], shot))
            validate = Validation(
                data, tasks, selection["tasks"], model.remembers, computer.memory_mb, world.device, seed
            )
            result = train_shown(
                meta_training(model, data, shot, params, acceleration, validate, world, seed),
                cell,
                MEASURE,
                paths.model(cell) / "curve.csv",
                inputs={"options": options, "dataset": sha256(paths.dataset(dataset) / HEADER), "pretrained": weights},
                checkpoint_every=computer.checkpoint_every,
                log=_run,
            )
        if world.rank == 0:
            write_model(paths.model(cell), model, card, data, world.device, seed)
    return result


class Validation:
    """HM on validation tasks, asked of a method while it trains; every validation image is embedded once a time."""

    def __init__(
        self, data: Dataset, tasks: Tasks, number: int, remembers: int, memory_mb: int, device: torch.device, seed: int
    ) -> None:
        self.data, self.tasks, self.device = data, tasks, device
        self.number, self.memory_mb = number, memory_mb
        self.exemplars_SM = draw_exemplars(data, remembers, seed)
        self.rows_N = torch.cat([data.roles["val"], data.roles["seen_val"], self.exemplars_SM.flatten()]).unique()

    def __call__(self, method: Method) -> float:
        """Mean HM in percent."""
        embedded = Embedded(self.rows_N, embed(method.backbone, self.data, self.rows_N, self.device), model="")
        if method.remembers:
            method.remember(embedded.of(self.exemplars_SM))
        return mean_hm(
            method, embedded, self.data, self.tasks, limit=self.number, memory_mb=self.memory_mb, device=self.device
        )


def meta_training(
    method: Method,
    data: Dataset,
    shot: int,
    params: TrainingParams,
    acceleration: Acceleration,
    validate: Validation,
    world: World,
    seed: int,
) -> Training:
    """The loop of one method, prepared."""
    return meta_train(
        method,
        data,
        optimisation_from(params.optimisation),
        shot=shot,
        steps=params.steps,
        seed=seed,
        validate=validate,
        validate_every=params.validate_every,
        batch_norm=params.batch_norm,
        augmentation=augmentation_from(params.augmentation),
        acceleration=acceleration,
        world=world,
    )


if __name__ == "__main__":
    with bad_input_exits():
        params = read_params(paths.PARAMS)
        config = training_config(sys.argv, params)
        method_class(config["method"])  # loaded before the run begins, so that its file is among the recorded sources
    run(ex, config, stage="train", cell=config["cell"])
