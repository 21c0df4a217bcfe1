"""One training with one setting and seed, measured on validation tasks: what `python -m stages train` would train.

Its outcome is a small file named after all that decides it but the code, so it is measured once; a training that was
killed goes on from its checkpoint.
"""

import hashlib
import json
import signal
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from repro import paths
from repro.errors import Diverged
from repro.files import whole_file
from repro.results.tuning import Outcome
from stages.launching.ranks import end_with_launcher
from stages.settings.files import plain
from stages.settings.grid import StartedLine
from stages.settings.kinds import TrainSettings
from stages.settings.params import MethodParams
from stages.settings.resolving import Resolver

NOTHING = Outcome(hm=0.0, cal_hm=0.0, ausuc=0.0, diverged=True)


@dataclass(frozen=True)
class Place:
    """Where a method is tried."""

    dataset: str
    method: str
    shot: int

    @property
    def name(self) -> str:
        return f"{self.dataset}-{self.method}-{self.shot}shot"


def settings_of(resolver: Resolver, place: Place, entry: MethodParams, seed: int) -> TrainSettings:
    """What the stage would train if params.yaml had this entry for the method, and its dataset none of its own."""
    from repro.methods.registry import method_class

    params = resolver.params
    here = replace(params.datasets[place.dataset], training={})
    with_entry = replace(
        params,
        threads=1,
        datasets={**params.datasets, place.dataset: here},
        methods={**params.methods, place.method: entry},
    )
    pretrained = method_class(place.method).pretraining
    line = StartedLine(
        dataset=place.dataset, method=place.method, shot=place.shot, ways=("all",), pretrained=pretrained
    )
    return replace(resolver.with_params(with_entry).train(place.name, line), seed=seed)


def file_of(settings: TrainSettings) -> Path:
    """Where the outcome lies: under the hash of every value and input."""
    from stages.train import inputs

    decides = {name: value for name, value in plain(settings).items() if name != "code"} | {"inputs": inputs(settings)}
    key = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:16]
    return paths.trial(settings.cell, key)


def read_outcome(file: Path) -> Outcome:
    """What was measured."""
    return Outcome(**json.loads(file.read_bytes())["outcome"])


def measure(settings: TrainSettings) -> str:
    """Train, measure, and write the outcome; gives a line that tells it. In a process of its own."""
    from repro.models.device import use_cpu
    from repro.training.checkpoints import own_checkpoints
    from repro.training.distributed import process_group
    from repro.training.loop import run
    from stages.train import prepare

    use_cpu(settings.threads)
    began, file = time.process_time(), file_of(settings)
    checkpoints = paths.checkpoints(f"tuning-{file.stem}", settings.seed)
    with process_group(settings.machine.device) as world, own_checkpoints(checkpoints, world):
        ready = prepare(settings, world)
        assert ready.training is not None
        try:
            steps = run(
                ready.training, checkpoints, checkpoint_every=settings.machine.checkpoint_every, inputs=ready.inputs
            )
            for _ in steps:
                pass
            best = ready.training.best
            hm, cal_hm, ausuc = (round(value, 4) for value in ready.validation.measures(ready.method).values())
            outcome = Outcome(hm=hm, cal_hm=cal_hm, ausuc=ausuc, best_step=best.step if best else 0)
        except Diverged:
            outcome = NOTHING
        with whole_file(file) as partial:
            content: dict[str, Any] = {"outcome": asdict(outcome), "settings": plain(settings), "inputs": ready.inputs}
            partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return told(settings, outcome, time.process_time() - began)


def told(settings: TrainSettings, outcome: Outcome, seconds: float) -> str:
    """One line about a training."""
    training = settings.training
    assert training is not None
    what = f"{settings.cell}, seed {settings.seed}, {training.steps} steps, lr {training.lr}, {settings.options}"
    if outcome.diverged:
        return f"{what}: diverged ({seconds:.0f} s)"
    numbers = f"HM {outcome.hm:.2f}, calibrated {outcome.cal_hm:.2f}, AUSUC {outcome.ausuc:.2f}"
    return f"{what}: {numbers}, best at {outcome.best_step} ({seconds:.0f} s)"


class Trials:
    """Trainings side by side, a process and a thread each; those that were measured before are not run again."""

    def __init__(self, jobs: int) -> None:
        self.pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin)
        self.failure: Exception | None = None

    def outcomes(self, wanted: Iterable[TrainSettings]) -> list[Outcome]:
        """What each of them measured, in order; may be called from several threads, and waits.

        After a failure no training begins any more, and every caller gets the first one.
        """
        wanted = list(wanted)
        files = [file_of(settings) for settings in wanted]
        try:
            begun = [
                self.pool.submit(measure, settings)
                for settings, file in zip(wanted, files, strict=True)
                if not file.is_file()
            ]
            for each in begun:
                print(each.result(), flush=True)
        except Exception as error:
            self.failure = self.failure or error
            self.pool.shutdown(wait=False, cancel_futures=True)
            raise self.failure from None
        return [read_outcome(file) for file in files]


def _begin() -> None:
    """A process of the pool ends when we do."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_with_launcher()
