"""Methods that have learnt nothing: an accuracy that drawing lots would reach too is worth a warning."""

from collections.abc import Iterable, Mapping

from repro.results.store import Cell, Reading, Results

# What is asked of classes of one kind alone, by measure: the seen ones, or the task's unseen ones.
SEEN, UNSEEN = "s_s", "u_u"
ARROWS = {SEEN: "S→S", UNSEEN: "U→U"}


def chance_warnings(name: str, found: Mapping[str, tuple[float, float]], seen: int, way: int) -> list[str]:
    """A sentence for each measure, given as percent and half its interval, that is not above drawing lots."""
    choices = {SEEN: seen, UNSEEN: way}
    return [
        f"{name}: {ARROWS[measure]} is {mean:.2f} ± {ci:.2f} at {way} ways, and guessing among {choices[measure]} "
        f"classes gives {100 / choices[measure]:.2f}: it has learnt nothing; train it longer or with another lr"
        for measure, (mean, ci) in found.items()
        if mean - ci <= 100 / choices[measure]
    ]


def cells_at_chance(results: Results, cells: Iterable[Cell], seen_classes: Mapping[str, int], way: int) -> list[str]:
    """The same sentences for all cells that have been measured."""
    said = []
    for cell in cells:
        if cell.dataset in seen_classes and results.has(cell):
            means = {measure: results.estimate(Reading(cell, "gfsl", way, measure)) for measure in ARROWS}
            found = {measure: (mean.mean, mean.ci) for measure, mean in means.items() if mean}
            said += chance_warnings(cell.name, found, seen_classes[cell.dataset], way)
    return said
