"""A stage in small: `python -m tests.tracking.toy '{"runs": FOLDER, …}'` records one run through the real code."""

import contextlib
import json
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from repro.errors import BadInput
from stages.tracking import Log, experiment, record


@dataclass(frozen=True)
class ToySettings:
    """What the toy is told; `trouble` says how it ends."""

    cell: str = "mini-castle-1shot"
    dataset: str = "mini"
    method: Any = "castle"
    shot: int = 1
    steps: int = 5
    first: int = 0
    trouble: str = ""
    pause: float = 0.0
    seed: int = 0
    outputs: dict[str, str] = field(default_factory=dict)


def toy(settings: ToySettings, log: Log) -> dict[str, Any]:
    """Log scalars, then return, fail, or complain."""
    for step in tqdm(range(settings.first, settings.steps), desc="training"):
        if settings.trouble == "interrupt" and step == 7:
            raise KeyboardInterrupt
        log.log_scalar("loss", (10 + settings.seed) / (1 + step), step)
        log.log_scalar("val.hm", 50 + step / settings.steps, step)
        with contextlib.suppress(*([Exception] if settings.trouble == "swallow" else [])):
            time.sleep(settings.pause)
    print("done with", settings.cell)
    if settings.trouble == "input":
        raise BadInput("shot is 3, expected 1 or 5; set shot in params.yaml")
    if settings.trouble == "crash":
        raise RuntimeError("boom")
    log.add_artifact(__file__, name="metrics.json")  # a name that the record itself uses
    outputs = {"outputs": settings.outputs} if settings.outputs else {}
    return {"hm": 60.0 + settings.seed, "acc": 70.0 + settings.seed, "ausuc": 0.5, **outputs}


def record_toy(runs: Path, cell: str = ToySettings.cell, **settings: Any) -> Any:
    """Record one run of the toy stage in this process."""
    return record(toy, ToySettings(cell=cell, **settings), stage="toy", cell=cell, runs=runs)


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    experiment.BEAT_SECONDS = arguments.pop("beat", experiment.BEAT_SECONDS)
    if "ignored" in arguments:
        signal.signal(arguments.pop("ignored"), signal.SIG_IGN)
    print("process", os.getpid(), flush=True)
    print("returned", record_toy(Path(arguments.pop("runs")), **arguments))
