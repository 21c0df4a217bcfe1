"""The loop: look at each stage once everything upstream is done, hand the stale ones over, commit what comes back."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dvc.exceptions import DvcException

from repro.errors import BadInput
from tools.scheduling.jobs import Engine, Event, Job
from tools.scheduling.pipeline import Pipeline, sentence
from tools.scheduling.progress import DONE, MOVING, Needs, Progress
from tools.scheduling.stopping import wait_for_end

TICK = 0.5


class Schedule:
    """A pipeline on an engine. `needs` names a stage group's resources, `through` wraps every command."""

    def __init__(
        self, pipeline: Pipeline, needs: Callable[[str], Needs], logs: Path, retries: int, through: Sequence[str] = ()
    ) -> None:
        self._pipeline, self._needs, self._retries, self._through = pipeline, needs, retries, list(through)
        self.stages: dict[str, Progress] = {}
        for stage in pipeline.plan:
            group = str(getattr(stage, "name", None) or stage.addressing).partition("@")[0]
            log = logs / f"{stage.addressing.replace('/', '_')}.log"
            self.stages[stage.addressing] = Progress(stage, group, log)

    def counts(self) -> Counter[str]:
        """How many stages are in each state."""
        return Counter(stage.state for stage in self.stages.values())

    def find_stale(self) -> bool:
        """Settle what comes before the first stale stage; tell whether there is one. If not, no engine is needed."""
        for progress in self.stages.values():
            try:
                if self._pipeline.is_stale(progress.stage):
                    return True
            except DvcException:  # `_look` will say it
                return True
            progress.state = "unchanged"
        self._pipeline.tidy(finished=True)
        return False

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

    def run(self, engine: Engine, show: Callable[[Progress], None], signals: list[int]) -> None:
        """Go on until nothing can move or a signal is noted; `show` is called with every stage whose state changed."""
        while not signals:
            progress = self._next(engine)
            if progress:
                self._look(progress, engine)
                show(progress)
            elif engine.flying:
                self._pipeline.write_lock()
            else:
                break
            for event in engine.events(0 if progress else TICK):
                self._apply(event, engine)
                show(self.stages[event.name])

    def finish(self) -> None:
        """With the engine closed: wait until the last command is gone, and leave dvc.lock as a serial run would."""
        for progress in self.stages.values():
            if progress.state in MOVING:
                wait_for_end(progress.log)
                self._settle(progress, "interrupted")
            elif progress.state == "waiting":
                self._settle(progress, "not reached")
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
        with self._errors_fail_the_stage(progress):
            look = self._pipeline.look(progress.stage)
            if look == "stale":
                progress.log.parent.mkdir(parents=True, exist_ok=True)
                progress.log.write_bytes(b"")
                self._submit(progress, engine)
            else:
                self._settle(progress, look)

    def _submit(self, progress: Progress, engine: Engine) -> None:
        progress.state, progress.node, progress.attempts = "queued", "", progress.attempts + 1
        engine.submit(self._job(progress))

    def _job(self, progress: Progress) -> Job:
        environment = self._pipeline.environment(progress.stage)
        if self._through:
            needs = self._needs(progress.group)
            environment |= {"CLUSTER_CPUS": f"{needs.num_cpus:g}", "CLUSTER_GPUS": f"{needs.num_gpus:g}"}
            environment |= {"CLUSTER_LOG": str(progress.log)}
        commands = [[*self._through, *command] for command in self._pipeline.commands(progress.stage)]
        cpus, gpus = self._wants(progress)
        return Job(progress.name, commands, progress.stage.wdir, environment, progress.log, cpus, gpus)

    def _apply(self, event: Event, engine: Engine) -> None:
        progress = self.stages[event.name]
        with self._errors_fail_the_stage(progress):
            if event.node:
                progress.state, progress.node, progress.began = "running", event.node, time.monotonic()
            elif event.code == 0:
                self._pipeline.commit(progress.stage)
                self._settle(progress, "ran")
            elif event.lost and progress.attempts <= self._retries:
                wait_for_end(progress.log)  # what the lost worker ran must write nothing after the cleaning
                self._pipeline.clean(progress.stage)
                self._submit(progress, engine)
            else:
                lost = f"its worker was lost {progress.attempts} times ({event.lost})" if event.lost else ""
                self._settle(progress, "failed", event.problem or lost or f"exit code {event.code}")

    @contextmanager
    def _errors_fail_the_stage(self, progress: Progress) -> Iterator[None]:
        """A stage that DVC or the disk refuses fails alone."""
        try:
            yield
        except (DvcException, OSError) as error:
            self._settle(progress, "failed", sentence(error))

    def _settle(self, progress: Progress, state: str, problem: str = "") -> None:
        self._pipeline.release(progress.stage)
        progress.state, progress.problem = state, problem
        progress.seconds = time.monotonic() - progress.began if progress.began else 0.0
