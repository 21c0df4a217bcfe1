"""One rank of a stage: a process that `torchrun`, or the stage itself (`_processes.py`), started beside others.

It runs the stage's main function without a record of its own. The first rank tells its launcher what is to be recorded
and printed, line by line through the pipe that REPRO_TELL names; the others, and all where there is no launcher, are
silent. A rank ends when its parent does.
"""

import contextlib
import json
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TextIO, cast

from repro.errors import BadInput

TELL = "REPRO_TELL"  # the pipe to the launcher
LAUNCHER = "REPRO_LAUNCHER"  # its process
TERMINAL = "REPRO_TELL_TERMINAL"  # set where the launcher's standard error is a terminal
BAD_INPUT_EXIT = 2
WATCH_SECONDS = 1.0


def is_rank() -> bool:
    """Tell whether this process is one of those that `torchrun` starts."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def run_rank(function: Callable[..., Any], config: dict[str, Any]) -> Any:
    """Call a stage's main function as one rank; what goes wrong is left to the launcher as torchrun's error file."""
    from torch.distributed.elastic.multiprocessing.errors import get_error_handler

    launcher = int(os.environ.get(LAUNCHER, os.getppid()))  # it may have died while this process began
    threading.Thread(target=_end_with, args=(launcher,), daemon=True).start()
    handler = get_error_handler()
    handler.initialize()
    with _telling() as tell:
        try:
            result = function(**config, _run=Teller(tell))
            tell({"result": result})
            return result
        except BadInput as error:
            handler.record_exception(error)
            raise SystemExit(BAD_INPUT_EXIT) from None
        except Exception as error:
            handler.record_exception(error)
            raise


def _end_with(parent: int) -> None:
    """A launcher that was killed cannot stop its ranks: they notice."""
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(1)


class Teller:
    """The part of a Sacred run that a training stage uses, told to the launcher."""

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        self._tell = tell

    def log_scalar(self, name: str, value: float, step: int) -> None:
        self._tell({"scalar": [name, value, step]})

    def add_artifact(self, filename: str, name: str) -> None:
        self._tell({"artifact": [filename, name]})


class _ToldStream:
    """A text stream whose text the launcher prints."""

    def __init__(self, name: str, tell: Callable[[dict[str, Any]], None]) -> None:
        self._name, self._tell = name, tell

    def write(self, text: str) -> int:
        self._tell({self._name: text})
        return len(text)

    def flush(self) -> None:
        """Every text is passed on at once."""

    def isatty(self) -> bool:
        return TERMINAL in os.environ


@contextlib.contextmanager
def _telling() -> Iterator[Callable[[dict[str, Any]], None]]:
    """A callable that passes messages to the launcher, standard streams and log lines among them; or to nobody."""
    pipe = os.environ.get(TELL)
    if os.environ["RANK"] != "0" or not pipe:
        warnings.simplefilter("ignore")
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            yield lambda _message: None
        return
    lock = threading.Lock()
    with open(pipe, "w", encoding="utf-8") as stream:

        def tell(message: dict[str, Any]) -> None:
            with lock:
                stream.write(json.dumps(message) + "\n")
                stream.flush()

        out, error = (cast(TextIO, _ToldStream(name, tell)) for name in ("stdout", "stderr"))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s")
            yield tell
