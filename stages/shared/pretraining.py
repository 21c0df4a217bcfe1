"""What a pre-training is run with; apart from `configs`, so that it depends on no method."""

from typing import Any

from stages._arguments import PretrainingLine, line_of
from stages._params import Params

PRETRAINING_SHOT = 1  # nearest-prototype accuracy of 1-shot tasks chooses the epoch


def pretraining_config(arguments: list[str], params: Params) -> dict[str, Any]:
    """Of one pre-trained backbone."""
    name, line = line_of(PretrainingLine, arguments, params)
    pretraining = params.pretraining
    return {
        "name": name,
        "dataset": line.dataset,
        "backbone": params.backbones[line.dataset].model_dump(),
        "classifier": pretraining.classifiers[line.classifier].model_dump(),
        "epochs": pretraining.epochs[line.dataset],
        "random": line.random,
        "pretraining": pretraining.model_dump(exclude={"epochs", "classifiers"}),
        "selection": {"way": params.measuring.selection.way, "shot": PRETRAINING_SHOT},
        "precision": params.precision.model_dump(),
        **common(params),
    }


def common(params: Params) -> dict[str, Any]:
    """What every training and evaluation is run with."""
    return {"machine": params.machine.model_dump(), "threads": params.threads, "seed": params.seed}
