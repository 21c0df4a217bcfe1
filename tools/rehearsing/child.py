"""One stage in a process of its own, run and recorded as the pipeline does, and timed.

The moves of a stage's progress bar are timed: images, lists, steps or tasks. A training is cut to a few steps and
a dataset to a sample after the stage has prepared them, so all else is the stage's own code.
"""

import importlib
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from repro.errors import one_line
from repro.training.loop import Training
from stages import episodes, evaluate, pretrain, splits, summary, train  # noqa: F401 - loaded before stages are forked
from stages.tracking import of_seed, progress, record
from tools.rehearsing.heavy import embed_at_most
from tools.rehearsing.measuring import Bar, Measured, Moment
from tools.rehearsing.sampling import Keep, prepare_sample

NO_MEMORY = ("out of memory", "can't allocate memory", "cannot allocate memory")
TRAININGS = {"pretrain": "prepare_pretraining", "train": "meta_train"}  # what prepares one, as the stage names it


@dataclass(frozen=True)
class Order:
    """A stage to run. `steps` shortens a training, `keep` a dataset, and `most_embedded` what is embedded.

    Without them it is run in full.
    """

    stage: str
    name: str
    settings: Any
    scratch: Path
    steps: int | None = None
    keep: Keep | None = None
    most_embedded: int | None = None
    environment: dict[str, str] = field(default_factory=dict)


def run(order: Order, answer: Connection) -> None:
    """Run the stage; tell what was measured. The process's output goes to a log in the scratch folder."""
    os.environ.update(order.environment)
    os.environ.pop("REPRO_MONGO_URL", None)  # a rehearsal is no run that anybody wants to find on a server
    os.chdir(order.scratch)
    log = order.scratch / "logs" / f"{order.stage}-{order.name}.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("w") as stream:
        for number in (1, 2):
            os.dup2(stream.fileno(), number)
    measured = Measured(order.stage, order.name)
    clock = Clock()
    _listen(measured, clock)
    module = importlib.import_module(f"stages.{order.stage}")
    if order.keep is not None:
        module.prepare = prepare_sample(order.keep)  # type: ignore[attr-defined]
    if order.most_embedded is not None:
        embed_at_most(order.most_embedded)
    if order.steps is not None and (name := TRAININGS.get(order.stage)):
        setattr(module, name, _cut(getattr(module, name), order.steps, measured))
    try:
        cell = of_seed(order.name, order.settings.seed) if hasattr(order.settings, "seed") else order.name
        record(getattr(module, order.stage), order.settings, stage=order.stage, cell=cell, runs=order.scratch / "runs")
    except SystemExit:  # BadInput, said already
        measured.problem = _last_error(log)
    except Exception as error:
        traceback.print_exc()
        measured.memory = is_out_of_memory(error)
        measured.problem = f"{type(error).__name__}: {one_line(error)[:300]}"
    sys.stdout.flush()
    sys.stderr.flush()
    measured.end = clock.now()
    if not measured.works:
        measured.log = log.read_text(errors="replace")[-4000:]
    measured.host_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if torch.cuda.is_initialized():
        measured.gpu_bytes = torch.cuda.max_memory_reserved()
    answer.send(measured)
    answer.close()


class Clock:
    """Wall and CPU time since this process began to work."""

    def __init__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def now(self) -> Moment:
        return time.perf_counter() - self._began[0], time.process_time() - self._began[1]


def _listen(measured: Measured, clock: Clock) -> None:
    """Let every progress bar of this process note when it moves."""

    class Noted(SimpleNamespace):
        def __init__(self, total: int, desc: str, unit: str, **_: Any) -> None:
            super().__init__(total=total, n=0, noted=Bar(unit.strip(), clock.now()))
            measured.bars.append(self.noted)

        def update(self, more: int = 1) -> None:
            self.n += more
            self.noted.ticks.append((clock.now(), self.n))

        def set_postfix(self, _: dict[str, str]) -> None:
            """Nobody looks."""

        def __enter__(self) -> "Noted":
            return self

        def __exit__(self, *_: object) -> None:
            self.noted.closed = clock.now()

    progress.tqdm = Noted  # type: ignore[assignment,misc]


def _cut(prepare: Callable[..., Training], steps: int, measured: Measured) -> Callable[..., Training]:
    """The same training, ended after `steps` steps and validated at the last one."""

    def prepared(*given: Any, **named: Any) -> Training:
        training = prepare(*given, **named)
        training.steps = training.validate_every = steps  # draws go on however small the sample is
        measured.facts["steps"] = training.steps
        measured.facts["images"] = len(training.draws.draw(1).rows_N)
        return training

    return prepared


def is_out_of_memory(error: BaseException) -> bool:
    """Whether this is how a GPU or the host says that it has no more memory."""
    known = isinstance(error, MemoryError | torch.OutOfMemoryError)
    return known or any(words in str(error).lower() for words in NO_MEMORY)


def _last_error(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("error: ")]
    return lines[-1].removeprefix("error: ") if lines else "it ended without a message"
