"""The status of the pipeline for a terminal and for programs."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from stages.tracking.names import printable
from tools.clock import clock
from tools.watching.pipeline import Part, Status
from tools.watching.runs import Curve

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 24
STATES = ("done", "running", "failed", "waiting")
LAST = 5  # finished parts that are shown


def sparkline(values: Sequence[float], width: int = WIDTH) -> str:
    """The series as at most this number of bars, each the mean of its share; what is no number is a cross."""
    size = max(1, math.ceil(len(values) / width))
    means = [sum(part) / len(part) for part in (values[at : at + size] for at in range(0, len(values), size))]
    numbers = [mean for mean in means if math.isfinite(mean)]
    low, span = min(numbers, default=0.0), max(numbers, default=0.0) - min(numbers, default=0.0)
    return "".join(
        BARS[round((mean - low) / span * (len(BARS) - 1)) if span else 0] if math.isfinite(mean) else "×"
        for mean in means
    )


def shown(status: Status) -> RenderableType:
    """A headline, what runs with its curves, what is wrong, and what was finished last."""
    lines: list[RenderableType] = [Text(headline(status)), Text(_by_stage(status))]
    if running := status.of("running"):
        table = Table("running", "on", "for", "step", "left", "loss", "validation", "heartbeat")
        for part in running:
            table.add_row(*map(escape, _row(part, status)))
        lines.append(table)
    lines += [Text(f"! {part.title}: {printable(part.problem)}", style="red") for part in status.problems]
    ended = [(part, part.run) for part in status.of("done") if part.run and part.run.ended]
    for part, run in sorted(ended, key=lambda each: str(each[1].ended))[-LAST:]:
        lines.append(Text(f"ran {part.title} in {clock(run.seconds)}"))
    lines += [Text(printable(line), style="bold red" if line.startswith("!") else "") for line in status.hope]
    return Group(*lines)


def headline(status: Status) -> str:
    """All in a line."""
    counts = Counter(part.state for part in status.parts)
    counted = [f"{counts[state]} {state}" for state in STATES if counts[state]]
    if any(part.state != "done" for part in status.parts):
        counted.append(_left(status, max(1, counts["running"])))
    return f"{len(status.parts)} parts: {', '.join(counted)}; {status.free / 1e9:.0f} GB of disk free"


def _left(status: Status, side_by_side: int) -> str:
    if status.left is None:
        return "time left not known yet"
    if not status.unmeasured:
        return f"about {clock(status.left)} left, {side_by_side} at a time"
    kinds = ", ".join(dict.fromkeys(part.stage for part in status.unmeasured))
    return f"at least {clock(status.left)} left, {side_by_side} at a time; of {kinds} nothing was measured yet"


def plain(status: Status) -> dict[str, Any]:
    """The same as values that JSON knows: seconds, bytes, and no number as null."""
    return {
        "time": status.now.isoformat(),
        "left_seconds": status.left,
        "unmeasured": len(status.unmeasured),
        "disk_free_bytes": status.free,
        "counts": dict(Counter(part.state for part in status.parts)),
        "hope": status.hope,
        "parts": [_plain_part(part) for part in status.parts],
    }


def _by_stage(status: Status) -> str:
    whole, done = Counter(part.stage for part in status.parts), Counter(part.stage for part in status.of("done"))
    return ", ".join(f"{stage} {done[stage]}/{number}" for stage, number in whole.items())


def _row(part: Part, status: Status) -> tuple[str, ...]:
    run = part.run
    assert run is not None  # it runs
    return (
        part.title,
        printable(run.host),
        clock(run.seconds),
        f"{run.step}/{run.steps or '?'}" if run.step else "",
        "?" if part.left is None else clock(part.left),
        _curve(run.loss, ".3f"),
        _curve(run.validation, ".2f"),
        f"{clock(max(0.0, (status.now - run.beat).total_seconds()))} ago",
    )


def _curve(curve: Curve, form: str) -> str:
    return f"{sparkline(curve.values)} {curve.values[-1]:{form}}" if curve.values else ""


def _plain_part(part: Part) -> dict[str, Any]:
    run = part.run
    about = {"stage": part.stage, "name": part.name, "seed": part.seed, "state": part.state, "problem": part.problem}
    if run is None:
        return about | {"left_seconds": part.left, "run": None}
    curves = {
        name: {"steps": curve.steps, "values": [value if math.isfinite(value) else None for value in curve.values]}
        for name, curve in (("loss", run.loss), ("validation", run.validation))
    }
    values = {"name": run.name, "status": run.status, "host": run.host, "seconds": run.seconds, "step": run.step}
    values |= {
        "steps": run.steps,
        "seconds_per_step": run.seconds_per_step,
        "heartbeat": run.beat.isoformat(),
        **curves,
    }
    return about | {"left_seconds": part.left, "run": values}
