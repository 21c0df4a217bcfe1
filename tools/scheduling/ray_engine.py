"""Ray's side: a task per stage that does nothing but run the stage's commands where Ray finds room for them.

A task tells twice: when it has started, with its node's name, and when the commands have ended, with their exit code. A
worker or node that dies says neither; then Ray's error is the event.
"""

import os
import socket
import subprocess
from collections.abc import Iterator
from typing import Any

from tools.scheduling.jobs import Event, Job


class RayEngine:
    """Jobs on Ray."""

    def __init__(self) -> None:
        self._flying: dict[Any, Job] = {}

    def submit(self, job: Job) -> None:
        """Queue the job; its commands run once, `events` tells how that went."""
        import ray

        task = ray.remote(follow).options(
            num_cpus=job.cpus, num_gpus=job.gpus, num_returns="streaming", max_retries=0, name=job.name
        )
        self._flying[task.remote(job.on_leash, job.folder, job.environment, job.gpus > 0)] = job

    @property
    def flying(self) -> list[Job]:
        """The jobs that are queued or running."""
        return list(self._flying.values())

    def events(self, seconds: float) -> Iterator[Event]:
        """Give what has happened, waiting so long at most for the first news."""
        import ray

        flying = list(self._flying)
        ready, _ = ray.wait(flying, num_returns=1, timeout=seconds, fetch_local=False) if flying else ([], [])
        for task in ready:
            yield self._next(task)

    def _next(self, task: Any) -> Event:
        import ray

        name = self._flying[task].name
        try:
            fields = ray.get(next(task))
        except (ray.exceptions.RayTaskError, ray.exceptions.RuntimeEnvSetupError) as error:  # our own code failed there
            event = Event(name, problem=f"the worker could not start it ({' '.join(str(error).split()[-40:])})")
        except ray.exceptions.RayError as error:
            event = Event(name, lost=f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
        else:
            event = Event(name, **fields)
        if not event.node:
            del self._flying[task]
        return event

    def room(self) -> tuple[float, float]:
        """CPUs and GPUs of the whole cluster."""
        import ray

        have = ray.cluster_resources()
        return have.get("CPU", 0.0), have.get("GPU", 0.0)

    def largest_node(self) -> tuple[float, float]:
        """The most CPUs and the most GPUs that one node has."""
        import ray

        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        return max(node.get("CPU", 0.0) for node in nodes), max(node.get("GPU", 0.0) for node in nodes)


def follow(
    command: list[str], folder: str, environment: dict[str, str], granted_gpus: bool
) -> Iterator[dict[str, Any]]:
    """On the worker: tell the node, run the command under its leash, tell the exit code."""
    yield {"node": socket.gethostname()}
    if not os.path.isdir(folder):
        problem = (
            f"{socket.gethostname()} has no folder {folder}; put the workspace on a filesystem that all nodes share"
        )
        yield {"problem": problem}
        return
    # The caller's environment, as under `dvc repro`, so no thread counts of Ray's; these two belong to the node.
    own = ["TMPDIR"] + ["CUDA_VISIBLE_DEVICES"] * granted_gpus
    environment = {name: value for name, value in environment.items() if name not in own}
    environment |= {name: os.environ[name] for name in own if name in os.environ}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as run:
        assert run.stdout
        yield {"code": int(run.stdout.read() or 1)}
