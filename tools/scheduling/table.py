"""What the user sees: one live table on a terminal, one line per settled stage elsewhere, and the exact end."""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from stages.tracking.capture import as_seen
from tools.clock import clock
from tools.scheduling.durations import Durations
from tools.scheduling.progress import MOVING, Progress
from tools.scheduling.schedule import Schedule

ORDER = ("ran", "restored", "unchanged", "failed", "interrupted", "not reached")
LAST_LINES = 10
LAST_BYTES = 1 << 14


class Board:
    """The schedule, as it goes."""

    def __init__(self, schedule: Schedule, memory: Path, hope: Callable[[str], Sequence[str]]) -> None:
        """`memory` is a file for `Durations`; `hope` says how the first results of a run look."""
        self._schedule, self._hope = schedule, hope
        self._durations = Durations(memory)
        self._console = Console(file=sys.stdout, highlight=False)
        self._live = Live(
            console=self._console,
            get_renderable=self._table,
            refresh_per_second=2,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._printed: set[str] = set()

    def shown(self) -> AbstractContextManager[Any]:
        """The live table between these lines, on a terminal."""
        return self._live if self._console.is_terminal else nullcontext()

    def tell(self, progress: Progress) -> None:
        """Print a stage that has just settled by more than being unchanged."""
        if progress.state in ("ran", "restored", "failed") and progress.name not in self._printed:
            self._printed.add(progress.name)
            where = f" on {progress.node} in {clock(progress.seconds)}" if progress.node else ""
            rest = "" if self._console.is_terminal else f" ({self._left()})"
            self._console.print(escape(f"{progress.state} {progress.name}{where}{rest}"), soft_wrap=True)
            for line in self._hope(progress.group) if progress.state == "ran" else ():
                self._console.print(escape(line), soft_wrap=True, style="bold red" if line.startswith("!") else None)

    def end(self, root: Path) -> None:
        """Print the summary, and each failed stage with its log's path and last lines."""
        counts = self._schedule.counts()
        self._durations.keep(self._schedule.stages.values())
        for progress in self._schedule.stages.values():
            if progress.state == "failed":
                self._console.print(escape(f"\nfailed: {progress.name}: {progress.problem}"), soft_wrap=True)
                if progress.log.exists() and progress.attempts:
                    self._console.print(escape(f"log: {progress.log.relative_to(root)}"), soft_wrap=True)
                    self._console.print(escape(tail(progress.log)), soft_wrap=True)
        named = [f"{counts[state]} {state}" for state in ORDER if counts[state] or state in ("ran", "unchanged")]
        self._console.print(", ".join(named))

    def _table(self) -> Table:
        table = Table("stage", "state", "worker", "time", "ETA", caption=self._left())
        now, expected = time.monotonic(), self._durations.expected(self._schedule.stages.values())
        for progress in self._schedule.stages.values():
            if progress.state in (*MOVING, "failed"):
                running = progress.state == "running"
                spent = now - progress.began if running else progress.seconds
                state = progress.state + (f" (attempt {progress.attempts})" if progress.attempts > 1 else "")
                known = running and progress.name in expected
                eta = clock(max(0.0, expected[progress.name] - spent)) if known else ""
                table.add_row(progress.name, state, progress.node, clock(spent) if progress.node else "", eta)
        return table

    def _left(self) -> str:
        """How many stages are in which state, and how long what is known of the rest takes."""
        stages, counts = self._schedule.stages.values(), self._schedule.counts()
        text = ", ".join(f"{count} {state}" for state, count in counts.items())
        expected, now = self._durations.expected(stages), time.monotonic()
        rest = [stage for stage in stages if stage.state in ("waiting", *MOVING)]
        if known := [stage for stage in rest if stage.name in expected]:
            spent = {stage.name: now - stage.began for stage in rest if stage.state == "running"}
            seconds = sum(max(0.0, expected[stage.name] - spent.get(stage.name, 0.0)) for stage in known)
            bound = "about" if len(known) == len(rest) else "at least"
            text += f"; {bound} {clock(seconds / max(1, counts['running']))} left"
        return text


def tail(log: Path) -> str:
    """The log's last lines, indented, without what a terminal would obey."""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - LAST_BYTES))
        lines = as_seen(stream.read().decode(errors="replace")).splitlines()[-LAST_LINES:]
    return "\n".join(f"    {line}" for line in lines)
