"""What the user sees: one live table on a terminal, one line per settled stage elsewhere, and the exact end."""

import sys
import time
from collections import defaultdict
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from tools.clock import clock
from tools.scheduling.progress import MOVING, Progress
from tools.scheduling.schedule import Schedule

ORDER = ("ran", "restored", "unchanged", "failed", "interrupted", "not reached")
LAST_LINES = 10
LAST_BYTES = 1 << 14


class Board:
    """The schedule, as it goes."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._console = Console(file=sys.stdout, highlight=False)
        self._live = Live(
            console=self._console,
            get_renderable=self._table,
            refresh_per_second=2,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._told: set[str] = set()

    def shown(self) -> AbstractContextManager[Any]:
        """The live table between these lines, on a terminal."""
        return self._live if self._console.is_terminal else nullcontext()

    def tell(self, progress: Progress) -> None:
        """Print a stage that has just settled by more than being unchanged."""
        if progress.state in ("ran", "restored", "failed") and progress.name not in self._told:
            self._told.add(progress.name)
            where = f" on {progress.node} in {clock(progress.seconds)}" if progress.node else ""
            self._console.print(escape(f"{progress.state} {progress.name}{where}"), soft_wrap=True)

    def end(self, root: Path) -> None:
        """Print the summary, and each failed stage with its log's path and last lines."""
        counts = self._schedule.counts()
        for progress in self._schedule.stages.values():
            if progress.state == "failed":
                self._console.print(escape(f"\nfailed: {progress.name}: {progress.problem}"), soft_wrap=True)
                if progress.log.exists() and progress.attempts:
                    self._console.print(escape(f"log: {progress.log.relative_to(root)}"), soft_wrap=True)
                    self._console.print(escape(tail(progress.log)), soft_wrap=True)
        named = [f"{counts[state]} {state}" for state in ORDER if counts[state] or state in ("ran", "unchanged")]
        self._console.print(", ".join(named))

    def _table(self) -> Table:
        table = Table("stage", "state", "worker", "time", "ETA", caption=self._caption())
        now, typical = time.monotonic(), self._typical()
        for progress in self._schedule.stages.values():
            if progress.state in (*MOVING, "failed"):
                running = progress.state == "running"
                spent = now - progress.began if running else progress.seconds
                left = typical.get(progress.group) if running else None
                state = progress.state + (f" (attempt {progress.attempts})" if progress.attempts > 1 else "")
                eta = clock(max(0.0, left - spent)) if left is not None else ""
                table.add_row(progress.name, state, progress.node, clock(spent) if progress.node else "", eta)
        return table

    def _caption(self) -> str:
        counts, typical = self._schedule.counts(), self._typical()
        text = ", ".join(f"{count} {state}" for state, count in counts.items())
        waiting = [typical.get(p.group) for p in self._schedule.stages.values() if p.state in ("waiting", *MOVING)]
        known = [seconds for seconds in waiting if seconds is not None]
        if known and len(known) == len(waiting):
            text += f"; at most {clock(sum(known) / max(1, counts['running']))} left"
        return text

    def _typical(self) -> dict[str, float]:
        """Mean seconds of the stages of a group that ran in this call."""
        spent = defaultdict(list)
        for progress in self._schedule.stages.values():
            if progress.state == "ran":
                spent[progress.group].append(progress.seconds)
        return {group: sum(seconds) / len(seconds) for group, seconds in spent.items()}


def tail(log: Path) -> str:
    """The log's last lines, indented."""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - LAST_BYTES))
        lines = stream.read().decode(errors="replace").splitlines()[-LAST_LINES:]
    return "\n".join(f"    {line}" for line in lines)
