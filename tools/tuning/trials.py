"""One training with one setting and seed, measured on validation tasks: what a stage would train.

Its outcome is a small file named after all that decides it but the code, so it is measured once; a training that was
killed goes on from its checkpoint.
"""

import hashlib
import json
import signal
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro import paths
from repro.errors import BadInput, Diverged, one_line
from repro.files import SEAL, sha256, whole_file
from repro.options import checked
from repro.results.tuning import TrialOutcome
from stages.launching.ranks import end_with_launcher
from stages.settings.files import plain
from stages.settings.grid import StartedLine
from stages.settings.kinds import PretrainSettings, TrainSettings
from stages.settings.params import MethodParams
from stages.settings.resolving import Resolver

if TYPE_CHECKING:  # they load torch, which the trainings' own processes need alone
    from repro.training.distributed import World
    from repro.training.loop import Training

NOTHING = TrialOutcome(hm=0.0, cal_hm=0.0, ausuc=0.0, diverged=True)


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


@dataclass(frozen=True)
class Begun:
    """A training ready to run; `measures` gives HM, calibrated HM and AUSUC of what it leaves."""

    training: "Training"
    inputs: dict[str, Any]
    measures: Callable[[], dict[str, float]]


@dataclass(frozen=True)
class MetaTrial:
    """The meta-training of one method."""

    settings: TrainSettings

    @property
    def name(self) -> str:
        return self.settings.cell

    @property
    def title(self) -> str:
        training = self.settings.training
        assert training is not None
        return f"{training.steps} steps, lr {training.lr}, {self.settings.options}"

    def inputs(self) -> dict[str, Any]:
        """What it reads, by content."""
        from stages.train import inputs

        return inputs(self.settings)

    def begin(self, world: "World") -> Begun:
        """See `Begun`."""
        from stages.train import prepare

        ready = prepare(self.settings, world)
        assert ready.training is not None
        return Begun(ready.training, ready.inputs, lambda: ready.validation.measures(ready.method))


@dataclass(frozen=True)
class PreTrial:
    """A pre-training, measured by a method that trains nothing after it."""

    settings: PretrainSettings
    method: str

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def title(self) -> str:
        return f"{self.settings.pretraining.epochs} epochs, as {self.method}"

    def inputs(self) -> dict[str, Any]:
        """What it reads, by content."""
        return {"dataset": sha256(paths.dataset(self.settings.dataset, self.settings.seed) / SEAL)}

    def begin(self, world: "World") -> Begun:
        """See `Begun`."""
        from repro.evaluation.validation import Validation
        from repro.trained.building import method_on
        from stages.pretrain import prepare

        ready, seed, memory = prepare(self.settings, world), self.settings.seed, self.settings.machine.memory_mb

        def measures() -> dict[str, float]:
            method = method_on(ready.model, ready.card, self.method, {}, seed)
            number = ready.tasks.spec.tasks
            validation = Validation(ready.data, ready.tasks, number, method.remembers, memory, world.device, seed)
            return validation.measures(method)

        return Begun(ready.training, ready.inputs, measures)


Trial = MetaTrial | PreTrial


def file_of(trial: Trial) -> Path:
    """Where the outcome lies: under the hash of every value and input."""
    values = {name: value for name, value in plain(trial.settings).items() if name != "code"}
    decides = json.dumps(values | {"inputs": trial.inputs()}, sort_keys=True)
    return paths.trial(trial.name, hashlib.sha256(decides.encode()).hexdigest()[:16])


def read_outcome(file: Path) -> TrialOutcome:
    """What was measured; raises BadInput where the file does not say it."""
    try:
        return checked(TrialOutcome, json.loads(file.read_bytes())["outcome"], "outcome")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        message = f"{file}: not what a training came to ({one_line(error):.200})"
        raise BadInput(f"{message}; delete it, and it is measured anew") from error


def measure(trial: Trial) -> str:
    """Train, measure, and write the outcome; gives a line that tells it. In a process of its own."""
    from torch.linalg import LinAlgError

    from repro.models.device import use_cpu
    from repro.training.checkpoints import own_checkpoints
    from repro.training.distributed import process_group
    from repro.training.loop import run

    settings = trial.settings
    use_cpu(settings.threads)
    started, file = time.process_time(), file_of(trial)
    checkpoints = paths.checkpoints(f"tuning-{file.stem}", settings.seed)
    with process_group(settings.machine.device) as world, own_checkpoints(checkpoints, world):
        begun = trial.begin(world)
        every, inputs = settings.machine.checkpoint_every, begun.inputs
        try:
            for _ in run(begun.training, checkpoints, checkpoint_every=every, inputs=inputs):
                pass
            best = begun.training.best
            hm, cal_hm, ausuc = (round(value, 4) for value in begun.measures().values())
            outcome = TrialOutcome(hm=hm, cal_hm=cal_hm, ausuc=ausuc, best_step=best.step if best else 0)
        except (Diverged, LinAlgError):  # a fit inside of the method may meet the exploded numbers first
            outcome = NOTHING
        with whole_file(file) as partial:
            content: dict[str, Any] = {"outcome": asdict(outcome), "settings": plain(settings), "inputs": inputs}
            partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return result_line(trial, outcome, time.process_time() - started)


def result_line(trial: Trial, outcome: TrialOutcome, seconds: float) -> str:
    """One line about a training."""
    what = f"{trial.name}, seed {trial.settings.seed}, {trial.title}"
    if outcome.diverged:
        return f"{what}: diverged ({seconds:.0f} s)"
    numbers = f"HM {outcome.hm:.2f}, calibrated {outcome.cal_hm:.2f}, AUSUC {outcome.ausuc:.2f}"
    return f"{what}: {numbers}, best at {outcome.best_step} ({seconds:.0f} s)"


class Trials:
    """Trainings side by side, a process and a thread each; those that were measured before are not run again."""

    def __init__(self, jobs: int) -> None:
        self.pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin)
        self.failure: Exception | None = None

    def outcomes(self, wanted: Iterable[Trial]) -> list[TrialOutcome]:
        """What each of them measured, in order; may be called from several threads, and waits.

        After a failure no training begins any more, and every caller gets the first one.
        """
        wanted = list(wanted)
        files = [file_of(trial) for trial in wanted]
        try:
            begun = [
                self.pool.submit(measure, trial)
                for trial, file in zip(wanted, files, strict=True)
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
