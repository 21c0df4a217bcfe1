"""A training stage in several processes: torchrun's launcher starts ranks of `python -m stages NAME …`.

`machine.processes` and `machine.nodes` of params.yaml say how many. The first rank records and prints; the others say
nothing but what goes wrong. If one fails, all end; a signal to the launcher reaches every rank; a rank ends when its
launcher is gone. With several nodes this is the first one, and every other node runs the same command, for one seed
after the other, under torchrun: `torchrun --nnodes N --node-rank 1 --nproc-per-node P --master-addr HOST --master-port
PORT -m stages train CELL --seed SEED`.
"""

import ctypes
import logging
import os
import re
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import Any

from repro.errors import BadInput, one_line
from stages.settings.planned import Asked

TRAININGS = ("pretrain", "train")
BAD_INPUT = 2  # the exit code
LAUNCHER = "REPRO_LAUNCHER"  # the launcher's process, for its ranks
STOP_SECONDS = 15  # before ranks that do not end are killed
WATCH_SECONDS = 1.0
PR_SET_PDEATHSIG = 1  # of Linux


@dataclass(frozen=True)
class Ranks:
    """How many processes a stage has on each of how many nodes, and where the first node listens."""

    processes: int = 1
    nodes: int = 1
    endpoint: str = ""

    @property
    def total(self) -> int:
        return self.processes * self.nodes


def ranks_of(stage: str) -> Ranks:
    """What params.yaml says of this stage."""
    from stages.settings.machine import machine

    if stage not in TRAININGS:
        return Ranks()
    here = machine()
    return Ranks(here.processes, here.nodes, here.endpoint)


# In a rank


def is_rank() -> bool:
    """Tell whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_follower() -> bool:
    """Tell whether this is a rank that leaves recording to the first one."""
    return is_rank() and os.environ["RANK"] != "0"


def end_with_launcher() -> None:
    """Watch the launcher: one that was killed cannot stop its ranks."""
    launcher = int(os.environ.get(LAUNCHER, os.getppid()))  # it may have died while this process began

    def watch() -> None:
        while os.getppid() == launcher:
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def end_at_once_with_launcher() -> None:
    """Let the system end this rank too, where it can: one that is left may hear of another's end and call it a failure.

    For what the launcher's main thread starts: the system means the thread, not the process.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    end_with_launcher()


def leave_to_launcher(error: BadInput) -> None:
    """Let the launcher say it, once for all ranks."""
    from torch.distributed.elastic.multiprocessing.errors import get_error_handler

    get_error_handler().record_exception(error)


# In the launcher


def launch(ranks: Ranks, ask: Asked) -> int:
    """Run a stage in these ranks; give its exit code: 2 for a bad input, 1 for any other failure."""
    from torch.distributed import DistError
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import elastic_launch

    from stages.tracking.runs import mark_dead_runs, of_seed, runs_folder

    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)  # failures are told below
    os.environ[LAUNCHER] = str(os.getpid())
    with tempfile.TemporaryDirectory(prefix="ranks") as scratch:
        try:
            elastic_launch(_config(ranks, scratch), sys.executable)("-m", "stages", *ask.words)
            return 0
        except SignalException as stopped:
            return int(128 + stopped.sigval)
        except ChildFailedError as error:
            return explain(error, ranks.total)
        except DistError as error:
            message = f"the ranks cannot meet at {_endpoint(ranks) if ranks.nodes > 1 else 'localhost'}"
            raise BadInput(f"{message} ({one_line(error)[:200]}); correct machine.endpoint or free its port") from None
        finally:  # a first rank that waits for others inside of torch hears no signal and is killed
            mark_dead_runs(runs_folder(), ask.stage, of_seed(ask.name, ask.seed), "killed with the other ranks")


def _config(ranks: Ranks, scratch: str) -> Any:
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
    from torch.distributed.launcher.api import LaunchConfig

    where: dict[str, Any] = {"rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0", "local_addr": "localhost"}
    if ranks.nodes > 1:
        where = {"rdzv_backend": "static", "rdzv_endpoint": _endpoint(ranks), "rdzv_configs": {"rank": 0}}
    return LaunchConfig(
        min_nodes=ranks.nodes,
        max_nodes=ranks.nodes,
        nproc_per_node=ranks.processes,
        run_id="none",  # torchrun's default: what the other nodes have
        max_restarts=0,
        logs_specs=DefaultLogsSpecs(log_dir=scratch),  # for the ranks' error files
        shutdown_timeout=STOP_SECONDS,
        **where,
    )


def _endpoint(ranks: Ranks) -> str:
    from stages.settings.machine import ENDPOINT, ENDPOINT_IN_WORDS

    address, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    endpoint = ranks.endpoint or (f"{address}:{port}" if address and port else "")
    if not endpoint:
        message = f"machine.nodes is {ranks.nodes}, but nothing says where the first node listens"
        raise BadInput(f"{message}; set machine.endpoint to host:port, or MASTER_ADDR and MASTER_PORT")
    if not re.fullmatch(ENDPOINT, endpoint):
        message = f"the first node's endpoint is {endpoint!r}, expected {ENDPOINT_IN_WORDS}"
        raise BadInput(f"{message}; correct machine.endpoint, or MASTER_ADDR and MASTER_PORT")
    return endpoint


def explain(error: Any, total: int) -> int:
    """Say why the stage failed: the bad input of a rank, or how ranks ended; their tracebacks are above."""
    failures = error.failures.items()
    for _, failure in failures:
        if failure.exitcode == BAD_INPUT and isinstance(failure.message, dict):
            print(f"error: {one_line(failure.message['message'].partition(': ')[2])}", file=sys.stderr)
            return BAD_INPUT
    ends = [f"rank {rank} with exit code {failure.exitcode}" for rank, failure in failures]
    print(f"error: of {total} ranks failed {', '.join(ends)}", file=sys.stderr)
    return 1
