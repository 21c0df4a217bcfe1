"""Where Ray runs: on this machine for one call, or on a cluster that is there already."""

import logging
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from repro.errors import BadInput, one_line
from tools.scheduling import ray_engine
from tools.scheduling.ray_engine import RayEngine

CONNECT_SECONDS = 5.0
STORE_BYTES = 80 << 20  # the smallest that Ray takes; nothing but exit codes goes through it


@contextmanager
def local_ray(cpus: int, log: Path) -> Iterator[RayEngine]:
    """Start Ray on this machine alone, for this call alone: closed to the network and to other users."""
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # short: a socket's path has at most 107 bytes
    os.environ |= {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # the switch that makes Ray listen on the loopback address only
    }
    try:
        inner = f"{folder}/ray"  # Ray opens the folder that it is given to everybody; nobody else may enter ours
        with _ray_session(
            log, num_cpus=cpus, include_dashboard=False, object_store_memory=STORE_BYTES, _temp_dir=inner
        ):
            yield RayEngine()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_ray(address: str, log: Path) -> Iterator[RayEngine]:
    """Join a running cluster from one of its nodes; raises BadInput where that is not possible."""
    if "://" in address:
        raise BadInput(f"{address} is a remote client's address; run tools/cluster on a node, with --address auto")
    if address != "auto":
        host, _, port = address.rpartition(":")
        try:  # Ray itself would try for a minute
            socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
        except (OSError, ValueError, OverflowError) as error:  # of a port beyond all
            raise BadInput(f"nothing answers at {address} ({error}); give host:port of Ray's head, or auto") from error
    with _ray_session(log, address=address):
        yield RayEngine()


@contextmanager
def _ray_session(log: Path, **options: Any) -> Iterator[None]:
    """Ray between these lines; what it and DVC print goes to a file, since the terminal shows our table."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ModuleNotFoundError as error:
        raise BadInput(f"Ray is not installed ({error}); add the extra `cluster`, or run tools/setup") from error

    # The workers take our function whole, so they need nothing of this repository on their path.
    ray.cloudpickle.register_pickle_by_value(ray_engine)
    with log.open("w") as stream, redirect_stdout(stream), redirect_stderr(stream):
        try:
            ray.init(log_to_driver=False, configure_logging=False, logging_level=logging.ERROR, **options)
        except (OSError, ValueError, RuntimeError) as error:
            reason = one_line(error)[:300]
            raise BadInput(f"Ray cannot be reached ({reason}); start it with `ray start`, or use --local N") from error
        try:
            yield
        finally:
            ray.shutdown()
