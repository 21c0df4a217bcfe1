"""A stage in small: `python -m tests.tracking.toy '{"runs": FOLDER, …}'` records one run through the real code."""

import contextlib
import json
import os
import sys
import time
from pathlib import Path

from tqdm import tqdm

from repro.errors import BadInput
from stages._experiment import Experiment, Run, prepare, run

ex = prepare(Experiment("toy"))


@ex.main
def toy(cell: str, steps: int, checkpoint: str, trouble: str, pause: float, seed: int, _run: Run) -> dict[str, float]:
    """Log scalars from the checkpointed step on, then return, fail, or complain."""
    resumed = bool(checkpoint) and Path(checkpoint).exists()
    for step in tqdm(range(int(Path(checkpoint).read_text()) if resumed else 0, steps), desc="training"):
        if trouble == "interrupt" and step == 7 and not resumed:
            raise KeyboardInterrupt
        _run.log_scalar("loss", (10 + seed) / (1 + step), step)
        _run.log_scalar("val.hm", 50 + step / steps, step)
        with contextlib.suppress(*([Exception] if trouble == "swallow" else [])):
            time.sleep(pause)
    print("done with", cell)
    if trouble == "input":
        raise BadInput("shot is 3, expected 1 or 5; set shot in params.yaml")
    if trouble == "crash":
        raise RuntimeError("boom")
    curve = Path(_run.observers[0].dir) / "curve.csv"
    curve.write_text("step,loss\n" + "\n".join(f"{step},{1 / (1 + step)}" for step in range(steps)))
    _run.add_artifact(curve, name="metrics.json")  # a name that the record itself uses
    return {"hm": 60.0 + seed, "acc": 70.0 + seed, "ausuc": 0.5}


DEFAULTS = {"dataset": "mini", "method": "castle", "shot": 1, "steps": 5, "checkpoint": "", "trouble": "", "pause": 0.0}


def record(runs: Path, cell: str = "mini-castle-1shot", **config: object) -> object:
    """Record one run of the toy stage in this process."""
    settings = {**DEFAULTS, "cell": cell, "seed": 0, **config}
    return run(ex, settings, stage="toy", cell=cell, runs=runs)


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    if "beat" in arguments:
        import stages._experiment as experiment

        experiment.BEAT_SECONDS = arguments.pop("beat")
    print("process", os.getpid(), flush=True)
    print("returned", record(Path(arguments.pop("runs")), **arguments))
