"""Predicted against measured: every stage run in full in a scratch folder of its own, then compared.

CPU time is compared beside wall time: on a machine that others use too, only the former says how good a prediction is.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tools.clock import clock
from tools.rehearsing.child import Order
from tools.rehearsing.measuring import CPU, WALL, Measured
from tools.rehearsing.predicting import Predictor
from tools.rehearsing.running import Rehearsal
from tools.rehearsing.work import Key, Stage

HEAD = "| stages | number | CPU time predicted | measured | off by | wall time predicted | measured |"


def run_in_full(rehearsal: Rehearsal, scratch: Path, stages: Iterable[Stage]) -> dict[Key, Measured]:
    """Run the stages as the pipeline would, with the first seed."""
    rehearsal.scratch = scratch
    return rehearsal.run([(stage, _full(stage, scratch)) for stage in stages])


def _full(stage: Stage, scratch: Path) -> Order:
    settings = stage.settings
    if not stage.replicated:
        settings = replace(settings, seeds=settings.seeds[:1])
    return Order(stage.kind, stage.name, settings, scratch)


def compared(predictor: Predictor, stages: Iterable[Stage], measured: dict[Key, Measured]) -> list[str]:
    """A row for each kind of stage and one for all of them."""
    whole = [stage for stage in stages if stage.key in measured and measured[stage.key].works]
    kinds = {stage.kind: [each for each in whole if each.kind == stage.kind] for stage in whole}
    lines = [HEAD, "|---" + "|---:" * (HEAD.count("|") - 2) + "|"]
    for name, group in {**kinds, "all": whole}.items():
        lines.append(_row(name, predictor, group, measured))
    return lines


def _row(name: str, predictor: Predictor, group: list[Stage], measured: dict[Key, Measured]) -> str:
    (cpu, cpu_true), (wall, wall_true) = (sums(predictor, group, measured, each) for each in (CPU, WALL))
    off = f"{100 * (cpu / cpu_true - 1):+.0f} %"
    return f"| {name} | {len(group)} | {clock(cpu)} | {clock(cpu_true)} | {off} | {clock(wall)} | {clock(wall_true)} |"


def sums(
    predictor: Predictor, group: Iterable[Stage], measured: dict[Key, Measured], of_clock: int
) -> tuple[float, float]:
    """Seconds of these stages, predicted and measured, without the start of their commands."""
    timed = Predictor(predictor.work, predictor.chosen, replace(predictor.rehearsed, start=0.0), of_clock)
    found = [(timed.seconds(stage) or 0.0, measured[stage.key].end[of_clock]) for stage in group]
    return sum(one for one, _ in found), sum(other for _, other in found)
