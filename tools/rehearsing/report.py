"""What a rehearsal tells: a line per stage, and the whole run in sum, as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.clock import clock
from tools.rehearsing.chains import Job, longest_chain, side_by_side
from tools.rehearsing.measuring import CPU, Measured
from tools.rehearsing.predicting import Predictor
from tools.rehearsing.sizes import readable
from tools.rehearsing.work import Stage

PLACES = (1, 2, 4, 8)
IDLE = 0.7  # of the wall time is CPU time where nobody else computes
HEAD = ("stage", "", "a step", "images/s", "tasks/s", "peak memory", "full: time", "full: disk")


@dataclass(frozen=True)
class Totals:
    """The whole run: seconds by number of places, the longest chain, bytes of all outputs and of checkpoints.

    `unknown` counts the stages whose time is not known, each as often as it runs; they add nothing.
    """

    seconds: dict[int, float]
    chain: list[Job]
    chain_seconds: float
    outputs: int
    checkpoints: int
    unknown: int


def totals(predictor: Predictor, stages: Sequence[Stage], places: int) -> Totals:
    """All stages, each as often as there are seeds."""
    seeds = predictor.work.params.seeds
    seconds: dict[Job, float] = {}
    needs: dict[Job, list[Job]] = {}
    outputs = largest = unknown = 0
    for stage in stages:
        of_stage, takes = seeds if stage.replicated else seeds[:1], predictor.seconds(stage)
        unknown += len(of_stage) if takes is None else 0
        for seed in of_stage:
            job = (*stage.key, seed)
            seconds[job] = takes or 0.0
            upstream = [(key, each) for key in stage.needs for each in ([seed] if stage.replicated else seeds)]
            needs[job] = [(*key, each) for key, each in upstream if (*key, each) in seconds]
        size = predictor.bytes(stage)
        outputs += len(of_stage) * size
        largest = max(largest, size if stage.kind in ("pretrain", "train") else 0)
    found = {number: side_by_side(seconds, needs, number) for number in sorted({*PLACES, places})}
    length, chain = longest_chain(seconds, needs)
    return Totals(found, chain, length, outputs, 2 * places * largest, unknown)


def stage_lines(predictor: Predictor, stages: Sequence[Stage]) -> list[str]:
    """A row of the table for every stage of the full pipeline."""
    lines = [f"| {' | '.join(HEAD)} |", "|---|---" + "|---:" * (len(HEAD) - 2) + "|"]
    for stage in stages:
        timed = predictor.rehearsed.measured.get(predictor.chosen.stands_for(stage))
        own = predictor.chosen.stands_for(stage) == stage.key
        state = "not run" if timed is None else "works" if timed.works else "**fails**"
        if timed is not None and not own:
            state = f"as {timed.name}" if timed.works else state
        seconds = predictor.seconds(stage)
        full = "?" if seconds is None else clock(seconds)
        cells = (stage.title, state, *_speeds(predictor, timed), full, readable(predictor.bytes(stage)))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _speeds(predictor: Predictor, timed: Measured | None) -> tuple[str, str, str, str]:
    if timed is None or not timed.works:
        return "", "", "", ""
    step = images = tasks = ""
    if timed.stage == "splits":
        images = f"{predictor.rehearsed.samples[timed.name].total / max(predictor.packing(timed), 1e-9):,.0f}"
    if pace := predictor.pace(timed):
        step = f"{1000 * pace.step:,.0f} ms"
        images = f"{timed.facts['images'] / max(pace.step, 1e-9):,.0f}"
    if timed.stage == "evaluate":
        rates = predictor.rates(timed)
        tasks = " ".join(f"{1 / max(rate, 1e-9):,.0f}" for (kind, _), rate in rates.items() if kind == "gfsl")
    peak = timed.gpu_bytes or timed.host_bytes
    return step, images, tasks, readable(peak)


def failure_lines(measured: Sequence[Measured]) -> list[str]:
    """Each failed stage in a sentence, with the end of its log."""
    lines: list[str] = []
    for timed in measured:
        if not timed.works:
            lines += [f"- **{timed.stage} {timed.name} fails**: {timed.problem}", ""]
            if timed.log:
                lines += ["```", *timed.log.rstrip().splitlines()[-20:], "```", ""]
    return lines


def sum_lines(found: Totals, places: int, copies: int, unit: str) -> list[str]:
    """Time and disk of the whole run."""
    wide = [f"{number}: {clock(seconds)}" for number, seconds in found.seconds.items() if number > 1]
    chain = " → ".join(f"{kind} {name}" for kind, name, _ in found.chain)
    without = f"- **without {found.unknown} stages of kinds that fail**, whose time is not known:"
    outputs, checkpoints = readable(found.outputs), readable(found.checkpoints)
    return [
        *([without] if found.unknown else []),
        f"- one stage after the other: **{clock(found.seconds[1])}**",
        f"- by number of {unit} side by side: {', '.join(wide)}; here {places}: **{clock(found.seconds[places])}**",
        f"- longest chain: {clock(found.chain_seconds)} ({chain})",
        f"- disk: {outputs} of outputs, × {copies} with DVC's cache, and {checkpoints} of checkpoints: "
        f"**{readable(needed(found, copies))}**",
    ]


def busy_lines(predictor: Predictor, stages: Sequence[Stage], wall: float) -> list[str]:
    """What the run takes on an idle machine, where others worked on this one too: stages got a part of a core each."""
    alone = Predictor(predictor.work, predictor.chosen, predictor.rehearsed, CPU)
    computed = totals(alone, stages, 1).seconds[1]
    if computed >= IDLE * wall:  # both are 0 where every kind fails
        return []
    share = f"stages computed {100 * computed / wall:.0f} % of the time"
    return [f"- others used this machine too ({share}): alone, one after the other, it takes about {clock(computed)}"]


def needed(found: Totals, copies: int) -> int:
    """Bytes that must be free."""
    return copies * found.outputs + found.checkpoints


def write(file: Path, lines: Sequence[str]) -> None:
    """The report as a file."""
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
