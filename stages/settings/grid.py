"""paper/grid.yaml as DVC sees it: the cells behind the tables and figures, a line each."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field, with_config

from repro import paths
from repro.options import STRICT, checked
from stages.settings.params import Name, Options, Way, require_apart, require_once
from stages.settings.yaml_files import read_mapping


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class Line:
    """A method to measure. `options` and `training` are what this cell has instead of the method's own values.

    `seen` and `overlap` (percent) are protocols that it is measured with besides.
    """

    dataset: Name
    method: Name
    shot: Annotated[int, Field(ge=1)]
    ways: Annotated[tuple[Way, ...], Field(min_length=1)]
    seen: bool = False
    overlap: tuple[Annotated[int, Field(ge=1, le=100)], ...] = ()
    options: Options = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_once("ways", self.ways)
        require_once("overlap", self.overlap)


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class StartedLine(Line):
    """It starts from a pre-trained backbone of its dataset, by role."""

    pretrained: Name
    training: Options = field(default_factory=dict)


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class AdaptedLine(Line):
    """It builds on another cell's trained model."""

    base: Name


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class Grid:
    """All of paper/grid.yaml: `random` are datasets whose untrained backbone is wanted too."""

    random: tuple[Name, ...]
    trained: dict[Name, StartedLine]
    untrained: dict[Name, StartedLine]
    adapted: dict[Name, AdaptedLine]

    def __post_init__(self) -> None:
        require_once("random", self.random)
        require_once("cells", [*self.trained, *self.untrained, *self.adapted])
        require_apart("cells", self.lines())

    def lines(self) -> dict[str, Line]:
        """Every cell that is measured."""
        return {**self.trained, **self.untrained, **self.adapted}

    def stage_of(self, cell: str) -> str:
        """The stage that measures a cell, as `dvc repro` takes it."""
        group = "evaluate"
        if cell in self.untrained:
            group = "evaluate_untrained"
        if cell in self.adapted:
            group = "evaluate_adapted"
        return f"{paths.EVALUATIONS}:{group}@{cell}"


def read_grid(root: Path = Path()) -> Grid:
    """Read and check the grid; raises BadInput with everything that is wrong with it."""
    return read_grid_file(root / paths.GRID)


def read_grid_file(file: Path) -> Grid:
    """Read and check a grid in another file."""
    return checked(Grid, read_mapping(file, "the cells of the paper, a line each"), str(file))
