"""What tools/repro does once its environment is there: check the inputs, then `dvc repro` beside a fork server."""

import os
import signal
import subprocess

from repro import paths
from stages.launching.forkserver import fork_server
from stages.settings.grid import read_grid
from stages.settings.params import read_params
from stages.tracking import bad_input_exits


def check_inputs() -> None:
    """Answer a mistake in params.yaml or paper/grid.yaml before DVC meets it."""
    with bad_input_exits():
        read_params(paths.PARAMS)
        read_grid()


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
