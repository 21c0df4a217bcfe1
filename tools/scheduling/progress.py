"""One stage's way through a call."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

DONE = ("ran", "restored", "unchanged")
MOVING = ("queued", "running")


class Needs(Protocol):
    """What a stage reserves."""

    @property
    def num_cpus(self) -> int: ...

    @property
    def num_gpus(self) -> float: ...


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

    @property
    def name(self) -> str:
        return str(self.stage.addressing)
