"""The loop: look at each stage once everything upstream is done, hand the stale ones over, commit what comes back."""

import fcntl
import shlex
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from dvc.exceptions import DvcException

from repro.errors import BadInput
from tools.scheduling import leash
from tools.scheduling.engine import Engine, Event, Job
from tools.scheduling.pipeline import Pipeline, sentence

TICK = 0.5
DONE = ("ran", "restored", "unchanged")
MOVING = ("queued", "running")


class Needs(Protocol):
    """What a stage reserves."""

    num_cpus: int
    num_gpus: float


@dataclass
class Progress:
    """One stage's way: waiting, queued, running, then one of DONE, failed or not reached."""

    stage: Any
    group: str
    log: Path
    state: str = "waiting"
    node: str = ""
    began: float = 0.0
    seconds: float = 0.0
    attempts: int = 0
    problem: str = ""
    job: Job | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return str(self.stage.addressing)


class Schedule:
    """A pipeline on an engine. `needs` names a stage group's resources, `through` wraps every command."""

    def __init__(
        self, pipeline: Pipeline, needs: Callable[[str], Needs], logs: Path, retries: int, through: str = ""
    ) -> None:
        self._pipeline, self._needs, self._retries, self._through = pipeline, needs, retries, shlex.split(through)
        self.stages: dict[str, Progress] = {}
        for stage in pipeline.plan:
            group = str(getattr(stage, "name", None) or stage.addressing).partition("@")[0]
            log = logs / f"{stage.addressing.replace('/', '_')}.log"
            self.stages[stage.addressing] = Progress(stage, group, log)
        self.stopped = False

    def counts(self) -> Counter[str]:
        """How many stages are in each state."""
        return Counter(stage.state for stage in self.stages.values())

    def skip_unchanged(self) -> bool:
        """Settle what comes before the first stale stage; tell whether that was all, so that no Ray is needed."""
        for progress in self.stages.values():
            try:
                if self._pipeline.is_stale(progress.stage):
                    return False
            except DvcException:  # `_look` will say it
                return False
            progress.state = "unchanged"
        return True

    def check_room(self, engine: Engine) -> None:
        """Raise BadInput where a stage needs more than any node has: Ray would wait for ever."""
        cpus, gpus = engine.largest_node()
        for progress in self.stages.values():
            wants = self._wants(progress)
            if wants[0] > cpus or wants[1] > gpus:
                raise BadInput(
                    f"{progress.name} asks for {wants[0]:g} CPUs and {wants[1]:g} GPUs, the largest node has {cpus:g} "
                    f"and {gpus:g}; lower machine.resources.{progress.group} in params.yaml or add nodes"
                )

    def run(self, engine: Engine, show: Callable[[Progress | None], None]) -> None:
        """Go on until nothing can move or a signal stops it; `show` hears of every settled stage and of every tick."""
        with self._stoppable():
            while not self.stopped:
                stage = self._next(engine)
                if stage:
                    self._look(stage, engine)
                elif engine.flying:
                    self._pipeline.write_lock()
                else:
                    break
                for event in engine.events(0 if stage else TICK):
                    self._hear(event, engine)
                    show(self.stages[event.name])
                show(stage)

    def abandon(self) -> None:
        """After the engine has closed: wait until the last command is gone, then give its files free."""
        for progress in self.stages.values():
            if progress.state in MOVING:
                wait_for_end(progress.log)
                self._pipeline.release(progress.stage)
                progress.state = "interrupted"

    def finish(self) -> None:
        """Name what was not reached, and leave dvc.lock as a serial run would have."""
        for progress in self.stages.values():
            if progress.state == "waiting":
                progress.state = "not reached"
        self._pipeline.tidy(finished=all(progress.state in DONE for progress in self.stages.values()))

    def _next(self, engine: Engine) -> Progress | None:
        """The first stage whose upstream is done, unless it would only wait, with its old outputs removed."""
        room = engine.room()
        for progress in self.stages.values():
            if progress.state == "waiting" and self._has_room(progress, room):
                upstream = [self.stages[stage.addressing].state for stage in self._pipeline.upstream(progress.stage)]
                if all(state in DONE for state in upstream):
                    return progress
        return None

    def _has_room(self, progress: Progress, room: tuple[float, float]) -> bool:
        wants = self._wants(progress)
        moving = [(self._wants(other), other.state) for other in self.stages.values() if other.state in MOVING]
        if (wants, "queued") not in moving:  # one may wait for the next free place
            return True
        return all(sum(taken[kind] for taken, _ in moving) + wants[kind] <= room[kind] for kind in (0, 1))

    def _wants(self, progress: Progress) -> tuple[float, float]:
        if self._through:  # the wrapper reserves what the stage needs; here it only waits
            return 1.0, 0.0
        needs = self._needs(progress.group)
        return float(needs.num_cpus), float(needs.num_gpus)

    def _look(self, progress: Progress, engine: Engine) -> None:
        try:
            look = self._pipeline.look(progress.stage)
        except DvcException as error:
            self._settle(progress, "failed", sentence(error))
            return
        if look != "stale":
            self._settle(progress, look)
            return
        progress.log.parent.mkdir(parents=True, exist_ok=True)
        progress.log.write_bytes(b"")
        needs = self._needs(progress.group)
        environment = self._pipeline.environment(progress.stage)
        if self._through:
            environment |= {"CLUSTER_CPUS": f"{needs.num_cpus:g}", "CLUSTER_GPUS": f"{needs.num_gpus:g}"}
            environment |= {"CLUSTER_LOG": str(progress.log)}
        commands = [[*self._through, *command] for command in self._pipeline.commands(progress.stage)]
        wants = self._wants(progress)
        progress.job = Job(progress.name, commands, progress.stage.wdir, environment, progress.log, *wants)
        self._submit(progress, engine)

    def _submit(self, progress: Progress, engine: Engine) -> None:
        assert progress.job
        progress.state, progress.node, progress.attempts = "queued", "", progress.attempts + 1
        engine.submit(progress.job)

    def _hear(self, event: Event, engine: Engine) -> None:
        progress = self.stages[event.name]
        if event.node:
            progress.state, progress.node, progress.began = "running", event.node, time.monotonic()
        elif event.lost and progress.attempts <= self._retries:
            self._pipeline.clean(progress.stage)
            self._submit(progress, engine)
        elif event.code == 0:
            self._commit(progress)
        else:
            lost = f"its worker was lost {progress.attempts} times ({event.lost})" if event.lost else ""
            self._pipeline.release(progress.stage)
            self._settle(progress, "failed", event.problem or lost or f"exit code {event.code}")

    def _commit(self, progress: Progress) -> None:
        try:
            self._pipeline.commit(progress.stage)
        except DvcException as error:
            self._settle(progress, "failed", sentence(error))
        else:
            self._settle(progress, "ran")

    def _settle(self, progress: Progress, state: str, problem: str = "") -> None:
        progress.state, progress.problem = state, problem
        progress.seconds = time.monotonic() - progress.began if progress.began else 0.0

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        """SIGINT and SIGTERM end the loop between two steps, so that a commit is whole."""

        def stop(*_: Any) -> None:
            self.stopped = True

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def wait_for_end(log: Path) -> None:
    """Wait until nothing writes to the log any more, as long as a leash may take."""
    deadline = time.monotonic() + 2 * leash.GRACE_SECONDS
    with log.open("ab") as stream:
        while time.monotonic() < deadline:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                time.sleep(leash.TICK)
