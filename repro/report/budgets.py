"""What showed that a training has its plateau: validation AUSUC against steps, for each method and pre-training."""

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


def draw_budgets(tuning: Tuning, methods: Methods, folder: Path) -> Path:
    """A panel for pre-training and one per dataset; a mark is the budget. Gives the picture that the report inlines."""
    datasets = list(dict.fromkeys(one.dataset for one in tuning.budgets))
    titles = [*(["pre-training"] if tuning.pretraining else []), *datasets]
    with figure_style():
        canvas, panels = new_figure(PAGE_INCHES, 3.2, panels=len(titles))
        for axes, title in zip(panels, titles, strict=True):
            axes.set_xlabel("training steps" if title in datasets else "epochs")
            for one in tuning.budgets:
                if one.dataset == title:
                    label = f"{methods.label(one.method)}, {one.shot}-shot"
                    _draw(axes, one, label, methods.look(one.method), LINES.get(one.shot, ":"))
            for place, before in enumerate(tuning.pretraining if title not in datasets else ()):
                _draw(axes, before, before.dataset, Look(f"C{place}", "o", "-"), "-")
            axes.set_xscale("log", base=2)
            axes.set_title(title)
            axes.legend(fontsize=5, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, frameon=False)
        panels[0].set_ylabel("validation AUSUC (%)")
        save(canvas, folder, NAME)
    return folder / f"{NAME}.png"


def _draw(axes: Any, one: Climb, label: str, look: Look, style: str) -> None:
    points = [(rung.steps, rung.ausuc) for rung in one.rungs]
    axes.plot(*zip(*points, strict=True), color=look.color, linestyle=style, linewidth=1, label=label)
    chosen = [point for point in points if point[0] == one.steps]
    axes.plot(*zip(*chosen, strict=True), color=look.color, marker=look.marker, linestyle="")
