"""The command line of tools/cluster."""

import argparse
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from repro import paths
from repro.errors import BadInput
from tools.command_line import MOST_AT_ONCE, Parser, at_least, words
from tools.dvc_doctor import stage_groups
from tools.scheduling.clusters import local_ray, running_ray
from tools.scheduling.driving import Driver
from tools.scheduling.jobs import Engine
from tools.scheduling.progress import Needs
from tools.watching.hope import Hope

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
        "--local",
        type=at_least(1, MOST_AT_ONCE),
        metavar="N",
        help="start Ray on this machine with N CPUs (default: 2)",
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


def require_stages(resources: Iterable[str]) -> None:
    """Raise BadInput where machine.resources names what is no stage before its @."""
    stages = stage_groups()
    for name in resources:
        if name not in stages:
            raise BadInput(
                f"machine.resources names {name}, expected one of {', '.join(stages)}; correct {paths.PARAMS}"
            )


def driver(options: argparse.Namespace, needs: Callable[[str], Needs]) -> Driver:
    """What the options ask for."""

    def on_ray(log: Path) -> AbstractContextManager[Engine]:
        return running_ray(options.address, log) if options.address else local_ray(options.local or 2, log)

    return Driver("tools/cluster", on_ray, needs, options.retries, options.through, hope=Hope())
