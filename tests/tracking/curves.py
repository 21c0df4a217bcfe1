"""Stages in small that log curves: an evaluation every measure over ways, a training its loss and its validation."""

from dataclasses import dataclass
from pathlib import Path

from stages.tracking import Log, record

WAYS = [5, 10, 15, 20]
STEPS = 40
MEASURES = ("hm", "cal_hm", "ausuc", "s_su", "u_su")


@dataclass(frozen=True)
class CurveSettings:
    """`start` is where the curves begin."""

    method: str
    start: float
    dataset: str = "mini"
    shot: int = 1
    seed: int = 0


def evaluate(settings: CurveSettings, log: Log) -> dict[str, float]:
    """Every measure falls with the number of ways."""
    for number, name in enumerate(MEASURES):
        for way in WAYS:
            log.log_scalar(name, settings.start + number - way / 2, way)
    return {"hm": settings.start - 2.5, "ausuc": settings.start - 0.5}


def train(settings: CurveSettings, log: Log) -> dict[str, float]:
    """The loss of every step, and the validation of every tenth."""
    for step in range(1, STEPS + 1):
        log.log_scalar("loss", settings.start / step, step)
        if step % 10 == 0:
            log.log_scalar("val_hm", settings.start - 100 / step, step)
    return {"val_hm": settings.start}


def record_curves(runs: Path, method: str, start: float) -> None:
    """Record a training and the evaluation of what it trained."""
    settings, cell = CurveSettings(method, start), f"mini-{method}-1shot"
    record(train, settings, stage="train", cell=cell, runs=runs)
    record(evaluate, settings, stage="evaluate", cell=cell, runs=runs)
