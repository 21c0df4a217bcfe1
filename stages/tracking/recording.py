"""The one call that a stage makes to run its work as a recorded run; Sacred is loaded when it is made."""

import contextlib
import dataclasses
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from stages.launching.ranks import is_follower
from stages.tracking.exits import bad_input_exits, signals_exit
from stages.tracking.files import plain

Settings = TypeVar("Settings")
Result = TypeVar("Result")


class Log(Protocol):
    """What a stage may say about its run while it goes on."""

    def log_scalar(self, name: str, value: float, step: int | None = None, /) -> None:
        """Add a point to the series of this name; without a step, after its last one."""
        ...

    def add_artifact(self, filename: str, name: str) -> None:
        """Keep a copy of the file with the record, under this name."""
        ...


def record(
    function: Callable[[Settings, Log], Result], settings: Settings, *, stage: str, cell: str, runs: Path | None = None
) -> Result:
    """Call `function(settings, log)` as a recorded run of this stage and cell, and give its result.

    `settings` is a frozen dataclass (or a mapping); its plain form is the run's configuration, its `seed`, or 0, the
    global seed. `runs` is the folder of run folders, `runs/` of the repository unless given. Where the result holds
    `"outputs": {name: sha256}`, `runs/by_output/<sha256>` leads to the run.

    BadInput ends the process with its sentence and exit code 2; SIGINT, SIGTERM and SIGHUP end it with 128 and their
    number; any other exception is recorded and raised again. Of several ranks the first one records.
    """
    from stages.tracking import experiment

    given: Any = settings
    values = dict(given) if isinstance(given, Mapping) else dataclasses.asdict(given)
    config = {"seed": 0, **plain(values)}
    with bad_input_exits(), signals_exit():
        if is_follower():
            with _drop_output():
                return experiment.run_unrecorded(function, settings, config)
        return experiment.run_recorded(function, settings, config, stage, cell, runs)


@contextlib.contextmanager
def _drop_output() -> Iterator[None]:
    """Drop the output and warnings of a rank that does not record; its errors stay."""
    warnings.simplefilter("ignore")
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield
