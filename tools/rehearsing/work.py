"""Every stage of the full pipeline: what it is run with, and which stages it waits for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from repro import paths
from repro.errors import BadInput
from stages.settings.grid import Grid
from stages.settings.params import Params
from stages.settings.resolving import Resolver

Key = tuple[str, str]  # stage and name
MODELS = {"pretrained": "pretrain", "cells": "train", paths.EXPERIMENT: "train"}  # folders of models by who makes them


@dataclass(frozen=True)
class Stage:
    """One stage of the pipeline; with several seeds it has a replicate for each."""

    kind: str
    name: str
    settings: Any
    needs: tuple[Key, ...]

    @property
    def key(self) -> Key:
        return self.kind, self.name

    @property
    def title(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def replicated(self) -> bool:
        """Whether it is run once for every seed."""
        return hasattr(self.settings, "seed")


class Work:
    """All stages in the pipeline's order, by stage and name."""

    def __init__(self, params: Params, grid: Grid, root: Path, only: Sequence[str] = ()) -> None:
        """`only` keeps what these datasets and methods need; raises BadInput for a name that is neither."""
        params, grid = _narrowed(params, grid, only)
        self.params = params
        self.resolver = Resolver(params, grid, root)
        known = list(self.resolver.all())
        keys = [(kind, name) for kind, name, _ in known]
        self.stages = {
            (kind, name): Stage(kind, name, settings, NEEDS[kind](settings, keys)) for kind, name, settings in known
        }
        if methods := [name for name in only if name not in params.datasets]:
            self._keep_methods(methods)

    def of(self, kind: str) -> list[Stage]:
        """The stages of a kind."""
        return [stage for stage in self.stages.values() if stage.kind == kind]

    def _keep_methods(self, methods: Sequence[str]) -> None:
        """Drop evaluations of other methods, and what then nobody needs."""
        measured = {stage.key for stage in self.of("evaluate") if stage.settings.method in methods}
        wanted = measured | {stage.key for kind in ("episodes", "paper") for stage in self.of(kind)}
        waiting = list(wanted)
        while waiting:
            needs = self.stages[waiting.pop()].needs
            fresh = [key for key in needs if key not in wanted and key[0] != "evaluate"]
            wanted |= set(fresh)
            waiting += fresh
        self.stages = {
            key: replace(stage, needs=tuple(need for need in stage.needs if need in wanted))
            for key, stage in self.stages.items()
            if key in wanted
        }


def _narrowed(params: Params, grid: Grid, only: Sequence[str]) -> tuple[Params, Grid]:
    """Parameters and grid with the datasets among these names alone, or with all where there are none."""
    methods = {line.method for line in grid.lines().values()}
    for name in only:
        if name not in params.datasets and name not in methods:
            known = ", ".join([*params.datasets, *sorted(methods)])
            raise BadInput(
                f"--only is {name!r}, expected datasets or methods of {paths.PARAMS} and {paths.GRID}: {known}"
            )
    kept = [name for name in params.datasets if name in only]
    if not kept or len(kept) == len(params.datasets):
        return params, grid
    groups: dict[str, Any] = {
        group: {cell: line for cell, line in getattr(grid, group).items() if line.dataset in kept}
        for group in ("trained", "untrained", "adapted")
    }
    grid = replace(grid, random=tuple(name for name in grid.random if name in kept), **groups)
    dataset = params.dataset if params.dataset in kept else kept[0]
    return replace(params, datasets={name: params.datasets[name] for name in kept}, dataset=dataset), grid


def _model(settings: Any, _: Sequence[Key]) -> tuple[Key, ...]:
    folder = Path(settings.model)
    return ((MODELS[folder.name if folder.name in MODELS else folder.parent.name], folder.name),)


# The stages whose outputs a stage reads, by its settings and all stages that there are.
NEEDS: dict[str, Callable[[Any, Sequence[Key]], tuple[Key, ...]]] = {
    "splits": lambda settings, _: (),
    "episodes": lambda settings, _: (("splits", settings.dataset),),
    "pretrain": lambda settings, _: (("episodes", settings.dataset),),
    "train": lambda settings, _: (("pretrain", settings.pretrained),),
    "evaluate": _model,
    "summary": lambda settings, _: (("evaluate", settings.cell),),
    "paper": lambda _, every: tuple(key for key in every if key[0] == "evaluate" and key[1] != paths.EXPERIMENT),
}
