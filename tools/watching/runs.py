"""One run as its record tells it now, read from files alone; and what is wrong with it."""

import math
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from repro.errors import BadInput
from stages.tracking.files import read_facts, read_scalars
from tools.clock import clock

SILENT_SECONDS = 60.0  # a run beats every 10 s, also while it computes
STUCK_SECONDS, STUCK_STEPS = 300.0, 20  # without a step for this long, and for the time that this number of steps takes
VALIDATIONS = ("val_hm", "val_prototype_accuracy")  # how trainings name their validation


@dataclass(frozen=True)
class Curve:
    """A series of scalars: steps, values, and when each was logged."""

    steps: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    times: list[datetime] = field(default_factory=list)


@dataclass(frozen=True)
class WatchedRun:
    """The newest run of a stage and cell; curves are read while it runs."""

    name: str
    status: str
    host: str
    started: datetime
    beat: datetime
    ended: datetime | None
    config: dict[str, Any]
    complaint: str
    loss: Curve = Curve()
    validation: Curve = Curve()

    @property
    def running(self) -> bool:
        return self.status == "RUNNING"

    @property
    def seconds(self) -> float:
        """How long it took, or has taken up to its last heartbeat."""
        return ((self.ended or self.beat) - self.started).total_seconds()

    @property
    def step(self) -> int:
        """The last step of its training; 0 before the first."""
        return self.loss.steps[-1] if self.loss.steps else 0

    @property
    def steps(self) -> int | None:
        """All steps of its training; None where that is not known (yet)."""
        with suppress(KeyError, TypeError, ValueError, OverflowError):  # a record that is none of ours
            if training := self.config.get("training"):  # from random weights it has those of pre-training besides
                return int(training["steps"]) if self.step <= int(training["steps"]) else None
            if (pretraining := self.config.get("pretraining")) and self.validation.steps:
                return int(pretraining["epochs"]) * self.validation.steps[0]  # validated after every epoch
        return None

    @property
    def seconds_per_step(self) -> float | None:
        """Measured between its last steps, pauses for validation included."""
        times = self.loss.times[-200:]
        return (times[-1] - times[0]).total_seconds() / (len(times) - 1) if len(times) > 1 else None

    def problem(self, now: datetime) -> str:
        """What is wrong with it, in one sentence; empty where nothing is."""
        wrong = [step for step, loss in zip(self.loss.steps, self.loss.values, strict=True) if not math.isfinite(loss)]
        if wrong:
            return f"its loss is not a number since step {wrong[0]}; lower its learning rate"
        if not self.running:
            return self.complaint
        silent = (now - self.beat).total_seconds()
        if silent > SILENT_SECONDS:
            return f"no heartbeat for {clock(silent)}; it was killed, or its machine or disk is away"
        if self.loss.times and self.step < (self.steps or math.inf):
            waited = (now - self.loss.times[-1]).total_seconds()
            usual = median((b - a).total_seconds() for a, b in pairwise(self.loss.times)) if self.step > 1 else 0.0
            if waited > max(STUCK_SECONDS, STUCK_STEPS * usual):
                return f"no step for {clock(waited)}, though it sends heartbeats; see what its process waits for"
        return ""


def read_run(folder: Path) -> WatchedRun | None:
    """What the folder of a run says; None where it says nothing yet."""
    try:
        entry, config = read_facts(folder / "run.json"), read_facts(folder / "config.json")
        status, started = str(entry["status"]), _time(entry["start_time"])
        ended = _time(entry["stop_time"]) if entry.get("stop_time") else None
        series = read_scalars(folder) if status == "RUNNING" else {}
        return WatchedRun(
            name=folder.name,
            status=status,
            host=str(entry.get("host", {}).get("hostname", "")),
            started=started,
            beat=_time(entry["heartbeat"]) if entry.get("heartbeat") else started,
            ended=ended,
            config=dict(config),
            complaint=_complaint(status, entry),
            loss=_curve(series.get("loss")),
            validation=_curve(next((series[name] for name in VALIDATIONS if name in series), None)),
        )
    except (BadInput, OSError, KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None  # about to be written, or no record of ours; tools/sync names those


def _complaint(status: str, entry: dict[str, Any]) -> str:
    """How a run ended that did not complete."""
    if status in ("RUNNING", "COMPLETED"):
        return ""
    trace = entry.get("fail_trace") or []
    last = str(trace[-1]).strip().splitlines()[-1:] if trace else []
    return f"{status.lower()}: {last[0]}" if last else f"{status.lower()}; the same command goes on with it"


def _curve(series: dict[str, list[Any]] | None) -> Curve:
    if not series:
        return Curve()
    values = [math.nan if value is None else float(value) for value in series["values"]]
    return Curve([int(step) for step in series["steps"]], values, [_time(text) for text in series["timestamps"]])


def _time(text: str) -> datetime:
    """Records are in UTC, said or not."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
