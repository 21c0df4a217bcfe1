"""What tools/repro does once its environment is there: check the inputs, then `dvc repro` beside a fork server."""

import os
import signal
import subprocess
from pathlib import Path

from repro import paths
from stages.launching.forkserver import fork_server
from stages.settings.grid import read_grid
from stages.settings.params import read_params


def check_inputs() -> None:
    """Answer a mistake in params.yaml or paper/grid.yaml before DVC meets it; raises BadInput."""
    read_params(paths.PARAMS)
    read_grid()


def say_what_would_run(targets: list[str]) -> int:
    """Tell which stages are stale; `dvc repro --dry` itself stops at the first file that no stage has made yet."""
    from tools.scheduling import command
    from tools.scheduling.pipeline import Pipeline

    return command.say_what_would_run(Pipeline(Path(), targets, Path(".cluster") / "before.json"))


def reproduce(arguments: list[str]) -> int:
    """Run `dvc repro`; a signal is passed on to it, and what it leaves running is stopped."""
    with fork_server() as environment:
        # An interrupt at the terminal reaches DVC by itself.
        signal.signal(signal.SIGINT, lambda *_: None)
        dvc = subprocess.Popen(["dvc", "repro", *arguments], env=os.environ | environment)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda received, _frame: dvc.send_signal(received))
        code = dvc.wait()
    return code if code >= 0 else 128 - code
