"""From a pipeline and an engine to an exit code, for every tool that runs stages in parallel."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

from repro.files import collect_signals
from tools.scheduling.exclusive import OWN, exclusive_workspace
from tools.scheduling.jobs import Engine
from tools.scheduling.pipeline import Pipeline
from tools.scheduling.progress import DONE, Needs
from tools.scheduling.schedule import Schedule
from tools.scheduling.table import Board

INTERRUPTED = 130


@dataclass(frozen=True)
class Driver:
    """Brings a workspace up to date. `engine` is begun only where something is stale, and told where to write."""

    tool: str
    engine: Callable[[Path], AbstractContextManager[Engine]]
    needs: Callable[[str], Needs]
    retries: int = 2
    through: Sequence[str] = ()
    hope: Callable[[str], Sequence[str]] = lambda _: ()  # what is said after a stage of a group has run

    def run(self, root: Path, targets: list[str], dry: bool) -> int:
        """Give 0, 1 where a stage failed, 130 where it was interrupted. Raises BadInput."""
        own = root / OWN
        with exclusive_workspace(root, self.tool):
            pipeline = Pipeline(root, targets, own / "before.json", self.tool)
            if dry:
                return _say_what_would_run(pipeline)
            schedule = Schedule(pipeline, self.needs, own / "logs", self.retries, self.through)
            board = Board(schedule, own / "seconds.json", self.hope)
            signals = self._run_stale(schedule, board, own / "engine.log") if schedule.find_stale() else []
            board.end(root)
        if signals:
            print("interrupted; the same command goes on from here")
            return INTERRUPTED
        return int(not all(progress.state in DONE for progress in schedule.stages.values()))

    def _run_stale(self, schedule: Schedule, board: Board, log: Path) -> list[int]:
        """Run the schedule to its end or to the first signal; give the signals."""
        with ExitStack() as until_end:
            with self.engine(log) as engine:
                signals = until_end.enter_context(collect_signals())  # after Ray, which sets handlers of its own
                schedule.check_room(engine)
                with board.shown():
                    schedule.run(engine, board.tell, signals)
            schedule.finish()  # a second Ctrl-C does not disturb it
        return signals


def _say_what_would_run(pipeline: Pipeline) -> int:
    stale = set()
    for stage in pipeline.plan:
        after = [other.addressing for other in pipeline.upstream(stage) if other in stale]
        if pipeline.is_stale(stage):
            print(f"would run {stage.addressing}")
            stale.add(stage)
        elif after:
            print(f"would look at {stage.addressing} after {', '.join(after)}")
            stale.add(stage)
    print(f"{len(pipeline.plan) - len(stale)} of {len(pipeline.plan)} stages are up to date")
    return 0
