"""What tools/repro does once its environment is there: check the inputs, then run what is stale on this machine."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

from repro import paths
from stages.launching.forkserver import fork_server
from stages.launching.places import Place, offer_places, places_for
from stages.settings.grid import read_grid
from stages.settings.machine import Resources
from stages.settings.params import read_params
from tools.scheduling.driving import Driver
from tools.scheduling.local_engine import LocalEngine, local_engine
from tools.watching.hope import Hope

THREADS = "OMP_NUM_THREADS"


def reproduce(targets: list[str], jobs: int | None, dry: bool) -> int:
    """Bring the workspace up to date; give the exit code. Answers a mistake in the inputs before DVC meets it."""
    params = read_params(paths.PARAMS)
    read_grid()
    here = replace(params.machine, replicates=jobs or params.machine.replicates)
    places = places_for(here, params.threads)
    # Whatever a stage does before it sets its threads, and what sets none, keeps to its place.
    os.environ.setdefault(THREADS, str(params.threads))
    driver = Driver("tools/repro", lambda log: _machine(places, log), lambda _: Resources(), hope=Hope())
    return driver.run(Path.cwd(), targets, dry)


@contextmanager
def _machine(places: Sequence[Place], log: Path) -> Iterator[LocalEngine]:
    """As many stages at once as there are places, whose processes share them; what DVC prints goes to the log."""
    with fork_server() as libraries, offer_places(places) as room, local_engine(len(places)) as engine:
        os.environ.update(libraries | room)
        with log.open("w") as stream, redirect_stdout(stream), redirect_stderr(stream):
            yield engine
