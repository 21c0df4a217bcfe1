"""What showed that a training has its plateau: validation AUSUC against steps, for each method."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.report.facts import Methods
from repro.report.style import PAGE_INCHES, figure_style, new_figure, save
from repro.report.tables import rounded, signed
from repro.results.tuning import Budget, Tuning

NAME = "budgets"
LINES = {1: "-", 5: "--"}  # by shots


@dataclass(frozen=True)
class BudgetRow:
    """A method's budget as the report lists it."""

    dataset: str
    method: str
    shot: int
    tried: str
    gain: str
    budget: str


def view_budgets(tuning: Tuning, methods: Methods) -> list[BudgetRow]:
    """A row for every budget that was chosen."""
    return [
        BudgetRow(
            one.dataset,
            methods.label(one.method),
            one.shot,
            ", ".join(f"{rung.steps}: {rounded(rung.ausuc)}" for rung in one.rungs),
            signed(one.gain),
            str(one.steps) if one.reached else f"{one.steps}, no plateau yet",
        )
        for one in tuning.budgets
    ]


def draw_budgets(tuning: Tuning, methods: Methods, folder: Path) -> Path:
    """A panel per dataset, a line per method; a mark is the budget. Gives the picture that the report inlines."""
    datasets = list(dict.fromkeys(one.dataset for one in tuning.budgets))
    with figure_style():
        canvas, panels = new_figure(PAGE_INCHES, 3.2, panels=len(datasets))
        for axes, dataset in zip(panels, datasets, strict=True):
            for one in tuning.budgets:
                if one.dataset == dataset:
                    _draw(axes, one, methods)
            axes.set_xscale("log", base=2)
            axes.set_title(dataset)
            axes.set_xlabel("training steps")
            axes.legend(fontsize=5, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, frameon=False)
        panels[0].set_ylabel("validation AUSUC (%)")
        save(canvas, folder, NAME)
    return folder / f"{NAME}.png"


def _draw(axes: Any, one: Budget, methods: Methods) -> None:
    look, label = methods.look(one.method), f"{methods.label(one.method)}, {one.shot}-shot"
    points = [(rung.steps, rung.ausuc) for rung in one.rungs]
    style = LINES.get(one.shot, ":")
    axes.plot(*zip(*points, strict=True), color=look.color, linestyle=style, linewidth=1, label=label)
    chosen = [point for point in points if point[0] == one.steps]
    axes.plot(*zip(*chosen, strict=True), color=look.color, marker=look.marker, linestyle="")
