"""What the process of a rehearsed stage sends back: how it ended, and when its progress bar moved."""

from dataclasses import dataclass, field
from typing import Any

Moment = tuple[float, float]  # seconds of wall time and of this process's CPU time, since it began
WALL, CPU = 0, 1


@dataclass
class Bar:
    """A progress bar as it moved: its unit, when it opened and closed, and how far it was when."""

    unit: str
    opened: Moment
    ticks: list[tuple[Moment, int]] = field(default_factory=list)
    closed: Moment = (0.0, 0.0)

    def spans(self, clock: int) -> list[float]:
        """Seconds from each move of the bar to the next, the first from its opening."""
        moments = [self.opened, *(moment for moment, _ in self.ticks)]
        return [after[clock] - before[clock] for before, after in zip(moments, moments[1:], strict=False)]


@dataclass
class Measured:
    """One stage, as it ran. `problem` is empty where it works; `memory` tells whether that was what it lacked."""

    stage: str
    name: str
    bars: list[Bar] = field(default_factory=list)
    end: Moment = (0.0, 0.0)
    problem: str = ""
    memory: bool = False
    log: str = ""
    gpu_bytes: int = 0
    host_bytes: int = 0
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def works(self) -> bool:
        return not self.problem

    @property
    def bar(self) -> Bar:
        """The one that counts its work."""
        return self.bars[-1]
