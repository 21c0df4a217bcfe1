"""A stage in several processes: it starts ranks of itself with torchrun's own launcher and keeps the record.

The stage's command, its Sacred run and its outputs stay the same; `machine.processes` and `machine.nodes` of
params.yaml say how many ranks there are. They are fresh processes, never forks of this one. If one fails, all end, and
the stage fails with that rank's traceback; a signal to the stage ends them too. With several nodes this is the first
one; every other node runs the same command under torchrun: `torchrun --nnodes N --node-rank 1 --nproc-per-node P
--master-addr HOST --master-port PORT -m stages.train CELL …`.
"""

import contextlib
import functools
import inspect
import json
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from repro.errors import BadInput
from stages._params import Machine
from stages._rank import BAD_INPUT_EXIT, LAUNCHER, TELL, TERMINAL, is_rank

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)  # those that torchrun's launcher takes over
STOP_SECONDS = 10  # before ranks that do not end are killed
LAST_WORDS = 2000  # characters of a dead rank's standard error


class RankFailed(RuntimeError):
    """A rank of the stage failed; the message holds its traceback, or what is known of its end."""


def in_processes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a stage's main function, which takes `machine` and `_run`, run in as many ranks as `machine` says."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def run_or_launch(*given: Any, **named: Any) -> Any:
        arguments = signature.bind(*given, **named).arguments
        machine = Machine(**arguments["machine"])
        if machine.processes * machine.nodes == 1 or is_rank():
            return function(*given, **named)
        return _launch(function.__module__, machine, arguments["_run"])

    return run_or_launch


def _launch(module: str, machine: Machine, run: Any) -> Any:
    """Start the ranks with this process's own arguments, record what the first one tells, and give its result."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import elastic_launch

    stage = Path(sys.modules[module].__file__ or "").stem
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)  # failures are told below
    with tempfile.TemporaryDirectory(prefix="ranks") as scratch, _told(Path(scratch), run) as results, _own_signals():
        launch = elastic_launch(_config(machine, Path(scratch)), sys.executable)
        try:
            launch("-m", f"stages.{stage}", *sys.argv[1:])
        except ChildFailedError as error:
            raise explained(error, machine, Path(scratch)) from None
    if not results:
        raise RankFailed("the first rank ended without a result")
    return results[-1]


def _config(machine: Machine, scratch: Path) -> Any:
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
    from torch.distributed.launcher.api import LaunchConfig

    where: dict[str, Any] = {"rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0", "local_addr": "localhost"}
    if machine.nodes > 1:
        where = {"rdzv_backend": "static", "rdzv_endpoint": _endpoint(machine), "rdzv_configs": {"rank": 0}}
    return LaunchConfig(
        min_nodes=machine.nodes,
        max_nodes=machine.nodes,
        nproc_per_node=machine.processes,
        run_id="none",  # torchrun's default: what the other nodes have
        max_restarts=0,
        logs_specs=DefaultLogsSpecs(log_dir=str(scratch), redirects=Std.ALL),
        shutdown_timeout=STOP_SECONDS,
        **where,
    )


def _endpoint(machine: Machine) -> str:
    address, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    endpoint = machine.endpoint or (f"{address}:{port}" if address and port else "")
    if not endpoint:
        message = f"machine.nodes is {machine.nodes}, but nothing says where the first node listens"
        raise BadInput(f"{message}; set machine.endpoint to host:port, or MASTER_ADDR and MASTER_PORT")
    return endpoint


@contextlib.contextmanager
def _told(scratch: Path, run: Any) -> Iterator[list[Any]]:
    """Record and print what the first rank tells while the block runs; its result, once told, is in the list."""
    pipe, results = scratch / "told", list[Any]()
    os.mkfifo(pipe, 0o600)

    def listen(descriptor: int) -> None:
        with os.fdopen(descriptor, encoding="utf-8") as lines:
            for line in iter(lines.readline, "\n"):
                with contextlib.suppress(json.JSONDecodeError):  # cut short by the end of the rank
                    _record(json.loads(line), run, results)

    environment = {TELL: str(pipe), LAUNCHER: str(os.getpid())} | ({TERMINAL: "1"} if sys.stderr.isatty() else {})
    os.environ.update(environment)  # the launcher hands it on
    ear = os.open(pipe, os.O_RDWR)  # reading and writing, so that it stays open however often ranks come and go
    with ThreadPoolExecutor(1) as thread:
        heard = thread.submit(listen, os.dup(ear))
        try:
            yield results
        finally:
            os.write(ear, b"\n\n")  # an empty line ends the listening, also after half a line
            os.close(ear)
            heard.result()
            for name in environment:
                del os.environ[name]


def _record(message: dict[str, Any], run: Any, results: list[Any]) -> None:
    for kind, told in message.items():
        if kind == "scalar":
            run.log_scalar(*told)
        elif kind == "artifact":
            run.add_artifact(told[0], name=told[1])
        elif kind == "result":
            results.append(told)
        else:
            stream = getattr(sys, kind)
            stream.write(told)
            stream.flush()


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Give the launcher the signals for a while; one that it ended for then reaches whoever had it before."""
    from torch.distributed.elastic.multiprocessing import SignalException

    before = {number: signal.getsignal(number) for number in SIGNALS}
    received: list[int] = []
    try:
        yield
    except SignalException as stopped:
        received.append(stopped.sigval)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for stopping in received:
        signal.raise_signal(stopping)


def explained(error: Any, machine: Machine, scratch: Path) -> Exception:
    """What the stage fails with: a rank's BadInput as such; else all failures, ranks that died without a word first."""
    failures = sorted(error.failures.items(), key=lambda item: (item[1].exitcode > 0, item[1].timestamp))
    texts = []
    for rank, failure in failures:
        message = failure.error_file_data["message"]
        if failure.exitcode == BAD_INPUT_EXIT and isinstance(message, dict):
            return BadInput(message["message"].partition(": ")[2])
        if isinstance(message, dict):
            words = message["extraInfo"]["py_callstack"]
        else:
            logs = scratch.rglob(f"{failure.local_rank}/stderr.log")
            words = "".join([f"{failure.message}\n", *(log.read_text(errors="replace")[-LAST_WORDS:] for log in logs)])
        texts.append(f"rank {rank} of {machine.processes * machine.nodes} failed: {words.strip()}")
    return RankFailed("\n".join(texts))
