"""The way from a number to its dataset as the report shows it: cells, and the steps behind their records."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from repro.report.needs import CellNeed
from repro.results.origins import Step
from repro.results.provenance import Origin, all_steps, origin
from repro.results.store import Cell, Results

TO_ROOT = "../"  # from paper/report.html
# Stage → what readers call it, and what it makes.
WORDS = {
    "evaluate": ("Evaluation", "record"),
    "train": ("Training", "model"),
    "pretrain": ("Pre-training", "pre-trained backbone"),
    "episodes": ("Tasks", "task lists"),
    "splits": ("Dataset", "images and splits"),
}


@dataclass(frozen=True)
class CellView:
    """One cell as the report lists it: an origin per seed, none where it was not evaluated; how to make it again."""

    name: str
    needed_by: tuple[str, ...]
    origins: tuple[Origin, ...]
    command: str

    @property
    def chain(self) -> list[tuple[str, str]]:
        """Key and title of every step behind the records, each once, seed by seed; a dataset comes last."""
        steps = {step.key: step for origin in reversed(self.origins) for step in reversed(origin.steps)}
        return [(step.key, _title(step)) for step in reversed(steps.values())]


@dataclass(frozen=True)
class StepView:
    """One step as printed; `run` is its link from the report, `inputs` are role, key and title of each."""

    key: str
    title: str
    made: str
    seed: int
    settings: str
    code: str
    output: str
    run: str
    inputs: tuple[tuple[str, str, str], ...]


def view_cells(results: Results, needs: Iterable[CellNeed], reproduce: Callable[[str], str]) -> list[CellView]:
    """Every needed cell, with its origin where it was evaluated."""

    def found(cell: Cell) -> tuple[Origin, ...]:
        return tuple(origin(results.folder, folder) for folder in results.folders(cell).values())

    return [CellView(need.cell.name, need.needed_by, found(need.cell), reproduce(need.cell.name)) for need in needs]


def view_steps(cells: Iterable[CellView]) -> list[StepView]:
    """Every step behind these cells once."""
    return [
        StepView(
            key,
            _title(step),
            WORDS.get(step.stage, ("", "output"))[1],
            step.seed,
            json.dumps(step.settings, indent=1, sort_keys=True, ensure_ascii=False),
            step.code,
            step.output,
            TO_ROOT + step.run,
            tuple((role, one.key, _title(one)) for role, one in step.inputs.items()),
        )
        for key, step in all_steps(origin for cell in cells for origin in cell.origins).items()
    ]


def _title(step: Step) -> str:
    return f"{WORDS.get(step.stage, (step.stage, ''))[0]} {step.cell}, seed {step.seed}"
