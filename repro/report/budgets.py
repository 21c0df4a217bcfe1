"""What showed that a training has its plateau: validation AUSUC against steps, for each method and pre-training."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.cards import Look
from repro.report.facts import Methods
from repro.report.style import PAGE_INCHES, figure_style, new_figure, save
from repro.report.tables import rounded, signed
from repro.results.tuning import Budget, Climb, PretrainingBudget, Tuning

NAME = "budgets"
LINES = {1: "-", 5: "--"}  # by shots
COLUMNS = 3


@dataclass(frozen=True)
class BudgetRow:
    """A budget as the report lists it."""

    dataset: str
    method: str
    shot: str
    tried: str
    gain: str
    budget: str


def view_budgets(tuning: Tuning, methods: Methods) -> list[BudgetRow]:
    """A row for every budget that was chosen."""
    before = [_row(one, f"pre-training, as {methods.label(one.method)}", "", "epochs") for one in tuning.pretraining]
    return before + [_row(one, methods.label(one.method), str(one.shot), "steps") for one in tuning.budgets]


def _row(one: Budget | PretrainingBudget, method: str, shot: str, unit: str) -> BudgetRow:
    tried = ", ".join(f"{rung.steps}: {rounded(rung.ausuc)}" for rung in one.rungs)
    budget = f"{one.steps} {unit}" if one.reached else f"{one.steps} {unit}, no plateau yet"
    return BudgetRow(one.dataset, method, shot, tried, signed(one.gain), budget)


@dataclass(frozen=True)
class _Line:
    climb: Climb
    look: Look
    style: str
    label: str | None = None  # lines without one are in the legend of the whole picture


def draw_budgets(tuning: Tuning, methods: Methods, folder: Path) -> Path:
    """A panel for pre-training and one per dataset; a mark is the budget. Gives the picture that the report inlines."""
    datasets = list(dict.fromkeys(one.dataset for one in tuning.budgets))
    before = [_Line(one, Look(f"C{place}", "o", "-"), "-", one.dataset) for place, one in enumerate(tuning.pretraining)]
    rows = math.ceil((bool(before) + len(datasets) + 1) / COLUMNS)  # the place after the last panel is the legend's
    with figure_style():
        canvas, places = new_figure(PAGE_INCHES, 2.3 * rows, panels=COLUMNS, rows=rows)
        free = iter(places)
        if before:
            axes = next(free)
            _draw_panel(axes, "pre-training", "epochs", before)
            axes.legend(frameon=False, loc="lower right")
        for dataset in datasets:
            lines = [
                _Line(one, methods.look(one.method), LINES.get(one.shot, ":"))
                for one in tuning.budgets
                if one.dataset == dataset
            ]
            _draw_panel(next(free), dataset, "training steps", lines)
        _draw_legend(next(free), tuning, methods)
        for axes in free:
            axes.set_axis_off()
        save(canvas, folder, NAME)
    return folder / f"{NAME}.png"


def _draw_panel(axes: Any, title: str, unit: str, lines: list[_Line]) -> None:
    tried = sorted({rung.steps for line in lines for rung in line.climb.rungs})
    axes.set_xscale("log", base=2)
    axes.set_xticks(tried, [f"{steps:,}" for steps in tried])
    axes.set(title=title, xlabel=unit, ylabel="validation AUSUC (%)")
    for line in lines:
        points = [(rung.steps, rung.ausuc) for rung in line.climb.rungs]
        axes.plot(
            *zip(*points, strict=True), color=line.look.color, linestyle=line.style, linewidth=1, label=line.label
        )
        chosen = [point for point in points if point[0] == line.climb.steps]
        axes.plot(*zip(*chosen, strict=True), color=line.look.color, marker=line.look.marker, linestyle="")


def _draw_legend(axes: Any, tuning: Tuning, methods: Methods) -> None:
    """One for all datasets: a colour and mark per method, a line per number of shots."""
    axes.set_axis_off()
    for method in dict.fromkeys(one.method for one in tuning.budgets):
        look = methods.look(method)
        axes.plot([], [], color=look.color, marker=look.marker, linewidth=1, label=methods.label(method))
    for shot in sorted({one.shot for one in tuning.budgets}):
        axes.plot([], [], color="black", linestyle=LINES.get(shot, ":"), linewidth=1, label=f"{shot}-shot")
    if tuning.budgets:  # of methods; a benchmark of which only the pre-training is known has none yet
        axes.legend(loc="center", frameon=False, title="a mark is the budget", title_fontsize=8)
