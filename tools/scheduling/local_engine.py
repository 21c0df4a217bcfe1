"""This machine's side: several jobs at once, each a process that ends with this one."""

import selectors
import socket
import subprocess
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from tools.scheduling.jobs import Event, Job


class LocalEngine:
    """Jobs on this machine, `places` at once, in the order in which they come."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._queue: deque[Job] = deque()
        self._running: dict[str, tuple[Job, subprocess.Popen[bytes]]] = {}
        self._ends = selectors.DefaultSelector()

    def submit(self, job: Job) -> None:
        """See `Engine.submit`."""
        self._queue.append(job)

    @property
    def flying(self) -> list[Job]:
        """See `Engine.flying`."""
        return [job for job, _ in self._running.values()] + list(self._queue)

    def events(self, seconds: float) -> Iterator[Event]:
        """See `Engine.events`."""
        started = 0
        while self._queue and len(self._running) < self._places:
            self._start(job := self._queue.popleft())
            started += 1
            yield Event(job.name, node=socket.gethostname())
        for ready, _ in self._ends.select(0 if started else seconds):
            yield self._ended(ready.data)

    def room(self) -> tuple[float, float]:
        """A job takes one place, whatever it computes on: processes that need a GPU find it in theirs."""
        return float(self._places), 0.0

    largest_node = room

    def stop(self) -> None:
        """Let go of all leashes, and wait until what they held has ended."""
        for _, process in self._running.values():
            assert process.stdin
            process.stdin.close()
        for name in list(self._running):
            self._ended(name)
        self._ends.close()

    def _start(self, job: Job) -> None:
        process = subprocess.Popen(
            job.on_leash,
            cwd=job.folder,
            env=job.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout
        self._running[job.name] = job, process
        self._ends.register(process.stdout, selectors.EVENT_READ, job.name)

    def _ended(self, name: str) -> Event:
        _, process = self._running.pop(name)
        assert process.stdout
        self._ends.unregister(process.stdout)
        with process:
            return Event(name, code=int(process.stdout.read() or 1))  # a leash that was killed says nothing


@contextmanager
def local_engine(places: int) -> Iterator[LocalEngine]:
    """An engine while the block runs."""
    engine = LocalEngine(places)
    try:
        yield engine
    finally:
        engine.stop()
