"""What a stage of a cell is run with: parameters of its method, dataset and machine, brought together by name."""

from typing import Any

from repro import paths
from repro.errors import BadInput
from repro.paths import EXPERIMENT
from stages._params import AdaptedCell, Cell, Params


def trained_cells(params: Params) -> dict[str, Cell]:
    """Every cell that has a training stage, the experiment at the top of params.yaml among them."""
    return {**params.cells, EXPERIMENT: experiment(params)}


def measured_cells(params: Params) -> dict[str, Cell | AdaptedCell]:
    """Every cell that has an evaluation stage."""
    return {**trained_cells(params), **params.untrained, **params.adapted}


def experiment(params: Params) -> Cell:
    """The experiment as a cell."""
    pretrained = f"{params.dataset}-{params.methods[params.method].pretraining}"
    return Cell(dataset=params.dataset, method=params.method, shot=params.shot, pretrained=pretrained)


def pretraining_config(params: Params, name: str) -> dict[str, Any]:
    """Of one pre-trained backbone; validation tasks of the dataset's first ways and shots choose its epoch."""
    pretrained = params.pretrained[name]
    episodes = params.episodes[pretrained.dataset]
    return {
        "name": name,
        "dataset": pretrained.dataset,
        "selection": f"val/{episodes.test[0].way}way-{episodes.shots[0]}shot",
        "pretrained": pretrained.model_dump(),
        "precision": params.precision.model_dump(),
        "machine": params.machine.model_dump(),
        "seed": params.seed,
    }


def training_config(params: Params, name: str) -> dict[str, Any]:
    """Of the training of one cell."""
    cell = trained_cells(params)[name]
    method, episodes = params.methods[cell.method], params.episodes[cell.dataset]
    if method.base is not None:
        message = f"method is {cell.method!r}, which adapts a trained {method.base} and has no training of its own"
        raise BadInput(f"{message}; vary {method.base} instead, or measure an entry of `adapted` in params.yaml")
    return {
        "cell": name,
        "dataset": cell.dataset,
        "method": cell.method,
        "shot": cell.shot,
        "pretrained": cell.pretrained,
        "options": {**method.options, **cell.options},
        "training": None if method.training is None else method.training.model_dump(),
        "way": episodes.test[0].way,
        "selection": episodes.selection,
        "precision": params.precision.model_dump(),
        "machine": params.machine.model_dump(),
        "seed": params.seed,
    }


def evaluation_config(params: Params, name: str) -> dict[str, Any]:
    """Of the evaluation of one cell."""
    cell = measured_cells(params)[name]
    method, episodes = params.methods[cell.method], params.episodes[cell.dataset]
    stored = [entry.way for entry in episodes.test]
    way = params.way if name == EXPERIMENT else stored[0]
    if way not in stored:
        message = f"way is {way}, {cell.dataset} has stored tasks of {', '.join(map(str, stored))} ways"
        raise BadInput(f"{message}; choose one of them, or add tasks to episodes.{cell.dataset}.test")
    return {
        "cell": name,
        "dataset": cell.dataset,
        "method": cell.method,
        "shot": cell.shot,
        "model": _model_of(params, name, cell),
        "options": {**method.options, **(cell.options if isinstance(cell, Cell) else {})},
        "way": way,
        "tasks": [entry.model_dump() for entry in episodes.test],
        "seen": bool(episodes.seen),
        "limit": method.limit,
        "selection": episodes.selection,
        "benchmark": f"{params.benchmark.name}, {params.benchmark.scale}",
        "machine": params.machine.model_dump(),
        "seed": params.seed,
    }


def _model_of(params: Params, name: str, cell: Cell | AdaptedCell) -> str:
    if isinstance(cell, AdaptedCell):
        return str(paths.model(cell.base))
    return str(paths.pretrained(cell.pretrained) if name in params.untrained else paths.model(name))
