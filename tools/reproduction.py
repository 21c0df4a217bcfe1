"""What tools/repro does once its environment is there: check the inputs, then run what is stale on this machine."""

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

from repro import paths
from stages.launching.forkserver import fork_server
from stages.launching.places import Place, places_for, shared
from stages.settings.grid import read_grid
from stages.settings.machine import Resources
from stages.settings.params import read_params
from tools._bootstrap import positive
from tools.scheduling.driving import Driver
from tools.scheduling.local_engine import LocalEngine, local_engine

THREADS = "OMP_NUM_THREADS"


def parser(description: str) -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(
        prog="tools/repro", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("targets", nargs="*", metavar="STAGE", help="run what these need (default: all)")
    options.add_argument("--jobs", type=positive, metavar="N", help="replicates at once (default: machine.replicates)")
    options.add_argument("--dry", "--dry-run", action="store_true", help="say what would run, and run nothing")
    return options


def reproduce(options: argparse.Namespace) -> int:
    """Bring the workspace up to date; give the exit code. Answers a mistake in the inputs before DVC meets it."""
    params = read_params(paths.PARAMS)
    read_grid()
    here = replace(params.machine, replicates=options.jobs or params.machine.replicates)
    places = places_for(here, params.threads)
    # Whatever a stage does before it sets its threads, and what sets none, keeps to its place.
    os.environ.setdefault(THREADS, str(params.threads))
    driver = Driver("tools/repro", lambda log: _machine(places, log), lambda _: Resources())
    return driver.run(Path.cwd(), options.targets, options.dry)


@contextmanager
def _machine(places: Sequence[Place], log: Path) -> Iterator[LocalEngine]:
    """As many stages at once as there are places, whose processes share them; what DVC prints goes to the log."""
    with fork_server() as libraries, shared(places) as room, local_engine(len(places)) as engine:
        os.environ.update(libraries | room)
        with log.open("w") as stream, redirect_stdout(stream), redirect_stderr(stream):
            yield engine
