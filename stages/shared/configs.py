"""What a training or an evaluation is run with: its line of the grid and the parameters that concern it.

The experiment at the top of params.yaml is one more line, made here.
"""

from typing import Any

from repro import paths
from repro.errors import BadInput
from repro.methods.registry import method_class
from repro.paths import EXPERIMENT
from stages._arguments import EvaluationLine, TrainingLine, line_of
from stages._params import Params, Way
from stages.shared.pretraining import common


def training_config(arguments: list[str], params: Params) -> dict[str, Any]:
    """Of the training of one cell."""
    if arguments[1:] == [EXPERIMENT]:
        name, line = EXPERIMENT, _trained_experiment(params)
    else:
        name, line = line_of(TrainingLine, arguments, params)
    method = params.methods[line.method]
    return {
        "cell": name,
        "dataset": line.dataset,
        "method": line.method,
        "shot": line.shot,
        "pretrained": line.pretrained,
        "options": {**method.options, **line.options},
        "training": None if method.training is None else method.training.model_dump(),
        "selection": params.measuring.selection.model_dump(),
        "precision": params.precision.model_dump(),
        **common(params),
    }


def evaluation_config(arguments: list[str], params: Params) -> dict[str, Any]:
    """Of the evaluation of one cell; `way` is the one whose numbers a dashboard shows."""
    if arguments[1:] == [EXPERIMENT]:
        name, line, way = EXPERIMENT, _measured_experiment(params), params.way
    else:
        name, line = line_of(EvaluationLine, arguments, params)
        way = _stored_ways(line.ways, line.dataset, params)[0]
    method, measuring = params.methods[line.method], params.measuring
    return {
        "cell": name,
        "dataset": line.dataset,
        "method": line.method,
        "shot": line.shot,
        "model": line.model,
        "options": {**method.options, **line.options},
        "way": way,
        "ways": _stored_ways(line.ways, line.dataset, params),
        "few_shot": _stored_ways(measuring.few_shot, line.dataset, params),
        "detailed": _stored_ways(measuring.detailed, line.dataset, params),
        "seen": line.seen,
        "limit": method.limit or None,
        "selection": measuring.selection.model_dump(),
        "benchmark": f"{params.benchmark.name}, {params.benchmark.scale}",
        **common(params),
    }


def _stored_ways(ways: list[Way], dataset: str, params: Params) -> list[int]:
    """Numbers of ways, `all` as the most that tasks are stored of; raises BadInput where there are no such tasks."""
    stored = [entry.way for entry in params.episodes[dataset].test]
    numbers = [max(stored) if way == "all" else way for way in ways]
    for way in numbers:
        if way not in stored:
            message = f"way is {way}, {dataset} has stored tasks of {', '.join(map(str, stored))} ways"
            raise BadInput(f"{message}; choose one of them, or add tasks to episodes.{dataset}.test")
    return list(dict.fromkeys(numbers))


def _trained_experiment(params: Params) -> TrainingLine:
    method = method_class(params.method)
    if (base := method.base_method) is not None:
        message = f"method is {params.method!r}, which adapts a trained {base} and has no training of its own"
        raise BadInput(f"{message}; vary {base} instead, or measure a line of `adapted` in paper/grid.yaml")
    pretrained = f"{params.dataset}-{method.pretraining}"
    return TrainingLine(dataset=params.dataset, method=params.method, shot=params.shot, pretrained=pretrained)


def _measured_experiment(params: Params) -> EvaluationLine:
    """On all stored tasks of its shot, so that measures can be seen against ways."""
    _stored_ways([params.way], params.dataset, params)
    episodes = params.episodes[params.dataset]
    return EvaluationLine(
        dataset=params.dataset,
        method=params.method,
        shot=params.shot,
        model=str(paths.model(EXPERIMENT)),
        ways=[entry.way for entry in episodes.test],
        seen=bool(episodes.seen),
    )
