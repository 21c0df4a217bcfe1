"""A training that people can watch: a bar, every step's scalars, and the curve as a file."""

import csv
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repro.files import whole_file
from repro.training.loop import Training, run
from stages.tracking import Log, bar


def train_shown(
    training: Training,
    name: str,
    measure: str,
    checkpoints: Path,
    *,
    inputs: Mapping[str, Any],
    checkpoint_every: int,
    log: Log,
) -> dict[str, float]:
    """Train to the end, resuming where a checkpoint lies; show and log every step; give the best validation.

    `inputs` is what the result depends on besides the loop's own settings.
    """
    steps = run(training, checkpoints, checkpoint_every=checkpoint_every, inputs=inputs)
    log_history(training, measure, log)
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
    return {measure: training.best.value} if training.best else {}


def said(name: str, training: Training | None, measure: str) -> str:
    """What became of a training in one line, for the terminal."""
    if training is None:
        return f"{name}: nothing to train, taken over as it is"
    best = f", best {measure} {training.best.value:.2f}" if training.best else ""
    return f"{name}: {training.steps} steps{best}"


def log_history(training: Training, measure: str, log: Log) -> None:
    """Log the steps before the checkpoint that a training goes on from, so that its run has the whole curve."""
    series = {"loss": "loss", "lr": "lr", "validation": measure}
    for name, values in training.history.items():
        for step, value in enumerate(values, 1):
            if not math.isnan(value):
                log.log_scalar(series[name], value, step)


def attach_curve(file: Path, training: Training, measure: str, log: Log) -> None:
    """Write loss, learning rate and validation of every step as a small table, and attach it to the run."""
    history = training.history
    values = zip(history["loss"], history["lr"], history["validation"], strict=True)
    with whole_file(file) as partial, partial.open("w", newline="") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(["step", "loss", "lr", measure])
        for step, (loss, lr, value) in enumerate(values, 1):
            rows.writerow([step, f"{loss:.6g}", f"{lr:.6g}", "" if math.isnan(value) else f"{value:.4f}"])
    log.add_artifact(str(file), name=file.name)
