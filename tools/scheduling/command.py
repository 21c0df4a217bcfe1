"""From the command line to an exit code."""

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from repro.files import collect_signals
from tools.command_line import Parser, at_least, words
from tools.scheduling.clusters import joined, local
from tools.scheduling.holding import held
from tools.scheduling.pipeline import Pipeline
from tools.scheduling.progress import DONE, Needs
from tools.scheduling.schedule import Schedule
from tools.scheduling.table import Board

INTERRUPTED = 130


EXAMPLES = """  tools/cluster --local 2                           # two CPUs of this machine
  tools/cluster --address auto                      # the Ray cluster that this machine is a node of; see tools/slurm
  tools/cluster --local 4 train@mini-castle-1shot   # only what this stage needs
  tools/cluster --dry-run
"""


def parser(description: str) -> Parser:
    """The options."""
    options = Parser("cluster", description, EXAMPLES)
    options.add_argument(
        "targets", nargs="*", metavar="STAGE", help="run what these need, as in dvc repro (default: all)"
    )
    where = options.add_mutually_exclusive_group()
    where.add_argument(
        "--local", type=at_least(1), metavar="N", help="start Ray on this machine with N CPUs (default: 2)"
    )
    where.add_argument("--address", metavar="HOST:PORT", help="join the Ray cluster this machine belongs to, or `auto`")
    options.add_argument(
        "--retries", type=at_least(0), default=2, metavar="N", help="for a stage whose worker is lost (default: 2)"
    )
    options.add_argument(
        "--through", type=words, default=[], metavar="COMMAND", help="put this before every stage's command"
    )
    options.add_argument("--dry-run", action="store_true", help="say what would run, and run nothing")
    return options


def run(options: argparse.Namespace, root: Path, needs: Callable[[str], Needs]) -> int:
    """Bring the workspace up to date; give 0, 1 where a stage failed, 130 where it was interrupted. Raises BadInput."""
    own = root / ".cluster"
    with held(own / "lock"):
        pipeline = Pipeline(root, options.targets, own / "before.json")
        if options.dry_run:
            return say_what_would_run(pipeline)
        schedule = Schedule(pipeline, needs, own / "logs", options.retries, options.through)
        board = Board(schedule)
        signals = _run_on_ray(options, schedule, board, own / "ray.log") if schedule.find_stale() else []
        board.end(root)
    if signals:
        print("interrupted; the same command goes on from here")
        return INTERRUPTED
    return int(not all(progress.state in DONE for progress in schedule.stages.values()))


def _run_on_ray(options: argparse.Namespace, schedule: Schedule, board: Board, log: Path) -> list[int]:
    """Run the schedule to its end or to the first signal; give the signals."""
    with ExitStack() as until_end:
        with joined(options.address, log) if options.address else local(options.local or 2, log) as engine:
            signals = until_end.enter_context(collect_signals())  # after Ray, which sets handlers of its own
            schedule.check_room(engine)
            with board.shown():
                schedule.run(engine, board.tell, signals)
        schedule.finish()  # a second Ctrl-C does not disturb it
    return signals


def say_what_would_run(pipeline: Pipeline) -> int:
    """Tell which stages are stale, and which may be once those have run; give 0."""
    stale = set()
    for stage in pipeline.plan:
        after = [other.addressing for other in pipeline.upstream(stage) if other in stale]
        if pipeline.is_stale(stage):
            print(f"would run {stage.addressing}")
            stale.add(stage)
        elif after:
            print(f"would look at {stage.addressing} after {', '.join(after)}")
            stale.add(stage)
    print(f"{len(pipeline.plan) - len(stale)} of {len(pipeline.plan)} stages are up to date")
    return 0
