"""A stage's commands on their way, and what runs them."""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tools.scheduling import leash


@dataclass(frozen=True)
class Job:
    """A stage's commands, as argument lists, and what they need."""

    name: str
    commands: list[list[str]]
    folder: str
    environment: dict[str, str]
    log: Path
    cpus: float
    gpus: float

    @property
    def on_leash(self) -> list[str]:
        """The command that runs them as long as its standard input is held open, and prints their exit code."""
        return [sys.executable, leash.__file__, str(self.log), json.dumps(self.commands)]


@dataclass(frozen=True)
class Event:
    """News of a job: `node` when it has started, `code` when it has ended; `lost` with its worker, else `problem`."""

    name: str
    node: str = ""
    code: int | None = None
    lost: str = ""
    problem: str = ""


class Engine(Protocol):
    """Runs jobs where it finds room for them."""

    def submit(self, job: Job) -> None:
        """Queue the job; its commands run once, `events` tells how that went."""

    @property
    def flying(self) -> list[Job]:
        """The jobs that are queued or running."""

    def events(self, seconds: float) -> Iterable[Event]:
        """Give what has happened, waiting so long at most for the first news."""

    def room(self) -> tuple[float, float]:
        """CPUs and GPUs in all."""

    def largest_node(self) -> tuple[float, float]:
        """The most CPUs and the most GPUs that one node has."""
