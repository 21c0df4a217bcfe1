"""What pre-training and meta-training share: settings from parameters, the bar, the scalars, the curve."""

import csv
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repro import paths
from repro.files import whole_file
from repro.training.augment import Augmentation
from repro.training.loop import Training, run
from repro.training.optim import Optimisation, schedule_from
from stages._experiment import Run
from stages._params import AugmentationParams, OptimisationParams, TrainingParams
from stages._progress import bar


def optimisation_from(params: OptimisationParams) -> Optimisation:
    """Build the optimiser's settings with their schedule."""
    schedule = schedule_from(params.schedule.name, **params.schedule.options)
    return Optimisation(**params.model_dump(exclude={"schedule"}), schedule=schedule)


def without_pretraining(params: TrainingParams, left_out: dict[str, Any]) -> TrainingParams:
    """The same training from random weights: pre-training's steps and optimiser join in, batch norm learns too.

    Validation comes as often in all. Meta-training's own few steps and small rate would leave random weights random.
    """
    steps = params.steps + left_out["steps"]
    return params.model_copy(
        update={
            "steps": steps,
            "validate_every": math.ceil(steps * params.validate_every / params.steps),
            "batch_norm": "train",
            "optimisation": OptimisationParams(**left_out["optimisation"]),
        }
    )


def augmentation_from(params: AugmentationParams) -> Augmentation:
    """Build the augmentation."""
    return Augmentation(**params.model_dump())


def train_shown(
    training: Training,
    name: str,
    measure: str,
    curve: Path,
    *,
    inputs: Mapping[str, Any],
    checkpoint_every: int,
    log: Run,
) -> dict[str, float]:
    """Train to the end, resuming where a checkpoint lies; show a bar, log every step's scalars, write and attach the
    curve, and give the best value of the measure.

    `inputs` is what the result depends on besides the loop's own settings.
    """
    steps = run(training, paths.checkpoints(name), checkpoint_every=checkpoint_every, inputs=inputs)
    with bar(name, training.steps, "step") as shown:
        shown.update(training.step)
        for metrics in steps:
            log.log_scalar("loss", metrics.loss, metrics.step)
            log.log_scalar("lr", metrics.lr, metrics.step)
            if metrics.validation is not None:
                log.log_scalar(measure, metrics.validation, metrics.step)
            best = {} if metrics.best is None else {measure: f"{metrics.best:.2f}"}
            shown.set_postfix({"loss": f"{metrics.loss:.3f}", **best})
            shown.update()
    if training.world.rank == 0:
        write_curve(curve, training, measure)
        log.add_artifact(str(curve), name=curve.name)
    return {measure: training.best.value} if training.best else {}


def write_curve(file: Path, training: Training, measure: str) -> None:
    """Write loss, learning rate and validation of every step, as `dvc plots` reads them."""
    history = training.history
    values = zip(history["loss"], history["lr"], history["validation"], strict=True)
    with whole_file(file) as partial, partial.open("w", newline="") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(["step", "loss", "lr", measure])
        for step, (loss, lr, value) in enumerate(values, 1):
            rows.writerow([step, f"{loss:.6g}", f"{lr:.6g}", "" if math.isnan(value) else f"{value:.4f}"])
