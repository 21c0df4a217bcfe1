"""The whole rehearsal: a scratch folder, the chosen stages in as many places as the machine has, and what they took."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import torch

from repro import paths
from repro.data.dataset import open_dataset
from repro.files import disk_errors_as_bad_input, signals_wait
from stages.launching.places import Place, places_for
from stages.origins import OUTPUTS
from tools.benchmarks.costs import Backbone, backbone
from tools.rehearsing.child import Order, run
from tools.rehearsing.heavy import STEP, most_embedded
from tools.rehearsing.measuring import Measured
from tools.rehearsing.predicting import Rehearsed, folder_bytes
from tools.rehearsing.shortening import HEAVY_STEPS, STEPS, images_of_step, sample_of, short_settings
from tools.rehearsing.sizes import DatasetSize
from tools.rehearsing.work import Key, Stage, Work

PAPER_SOURCES = ("main.tex", "published.yaml", "tuning.json", "templates", "grid.yaml")
THREADS = "OMP_NUM_THREADS"
Tell = Callable[[str], None]


@contextmanager
def scratch_folder(root: Path) -> Iterator[Path]:
    """A folder beside the workspace, on the same disk, that is gone afterwards."""
    beside = root.parent
    with disk_errors_as_bad_input(beside):
        folder = Path(tempfile.mkdtemp(prefix=f".{root.name}-rehearsal-", dir=beside))
    try:
        (folder / paths.PAPER).mkdir()
        for name in PAPER_SOURCES:
            (folder / paths.PAPER / name).symlink_to(root / paths.PAPER / name)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Rehearsal:
    """Runs orders in the scratch folder, `places` at once, each as soon as what it needs has worked."""

    def __init__(self, work: Work, root: Path, scratch: Path, device: torch.device, tell: Tell) -> None:
        self.work, self.root, self.scratch, self.device, self.tell = work, root, scratch, device, tell
        self.places = places_for(work.params.machine, work.params.threads)
        self.processes = multiprocessing.get_context("forkserver")
        self.processes.set_forkserver_preload(["tools.rehearsing.child"])
        os.environ.setdefault(THREADS, str(work.params.threads))  # as tools/repro does

    def orders(
        self, chosen: Sequence[Stage], full: dict[str, DatasetSize], heavy: Mapping[str, Backbone]
    ) -> list[tuple[Stage, Order]]:
        """What is run of every chosen stage; backbones are `heavy` by dataset."""
        return [(stage, self._order(stage, full, heavy)) for stage in chosen]

    def _order(self, stage: Stage, full: dict[str, DatasetSize], heavy: Mapping[str, Backbone]) -> Order:
        settings = short_settings(stage, self.work, self.device, heavy)
        order = Order(stage.kind, stage.name, settings, self.scratch)
        if one := heavy.get(getattr(settings, "dataset", "")):
            order = replace(order, most_embedded=most_embedded(one))
        if stage.kind == "splits":
            name = settings.dataset
            return replace(order, keep=sample_of(name, self.work, full[name].seen))
        if stage.kind in ("pretrain", "train"):
            return replace(order, steps=self._steps(settings, full[settings.dataset]))
        return order

    def _steps(self, settings: Any, size: DatasetSize) -> int:
        """Fewer where a step takes a CPU seconds."""
        if self.device.type != "cpu":
            return STEPS
        images = images_of_step(settings, size.seen)
        one = self.work.resolver.backbone(settings.dataset)
        return HEAVY_STEPS if images * backbone(one.name, size.size).step > STEP else STEPS

    def run(self, orders: Sequence[tuple[Stage, Order]]) -> dict[Key, Measured]:
        """Run all; what needs a stage that failed is not tried. A process that dies counts as a failure."""
        waiting = {stage.key: (stage, order) for stage, order in orders}
        measured: dict[Key, Measured] = {}
        running: dict[Any, tuple[Stage, Any, Place]] = {}
        free = list(self.places)
        try:
            while waiting or running:
                self._drop_hopeless(waiting, measured)
                ready = [key for key, (stage, _) in waiting.items() if self._is_ready(stage, waiting, running)]
                while ready and free:
                    stage, order = waiting.pop(ready.pop(0))
                    place = free.pop()
                    with signals_wait():  # what is started is known to be
                        answer, process = self._start(replace(order, environment=place))
                        running[answer] = stage, process, place
                for answer in wait(list(running)) if running else ():
                    stage, process, place = running.pop(answer)
                    measured[stage.key] = timed = self._received(answer, process, stage)
                    free.append(place)
                    self.tell(
                        f"{'works' if timed.works else 'FAILS'} {stage.title} in {timed.end[0]:.1f} s{_why(timed)}"
                    )
        finally:  # an interrupt: what still runs must not write into a folder that goes
            for _, process, _ in running.values():
                process.kill()
                process.join()
        return measured

    def _start(self, order: Order) -> tuple[Any, Any]:
        ours, theirs = self.processes.Pipe(duplex=False)
        process = self.processes.Process(target=run, args=(order, theirs), daemon=True)
        process.start()
        theirs.close()
        return ours, process

    def _received(self, answer: Any, process: Any, stage: Stage) -> Measured:
        try:
            timed: Measured = answer.recv()
        except EOFError:
            process.join()
            killed = process.exitcode == -signal.SIGKILL
            why = ": killed, perhaps for its memory" if killed else ""
            problem = f"its process ended with {process.exitcode}{why}"
            timed = Measured(stage.kind, stage.name, problem=problem, memory=killed)
        process.join()
        return timed

    def _is_ready(self, stage: Stage, waiting: dict[Key, Any], running: dict[Any, Any]) -> bool:
        open_keys = set(waiting) | {each.key for each, _, _ in running.values()}
        return not any(need in open_keys for need in stage.needs)

    def _drop_hopeless(self, waiting: dict[Key, Any], measured: dict[Key, Measured]) -> None:
        for key, (stage, _) in list(waiting.items()):
            # The paper is rendered without evaluations that fail, but not without a dataset.
            needs = [one for one in measured if one[0] == "splits"] if stage.kind == "paper" else stage.needs
            if lacking := [need for need in needs if need in measured and not measured[need].works]:
                waiting.pop(key)
                timed = Measured(stage.kind, stage.name, problem=f"not tried: {' '.join(lacking[0])} fails")
                measured[key] = timed

    def rehearsed(
        self, orders: Sequence[tuple[Stage, Order]], measured: dict[Key, Measured], full: dict[str, DatasetSize]
    ) -> Rehearsed:
        """What was measured, with all that predictions need."""
        seed = self.work.params.seeds[0]
        samples = {}
        for stage, _ in orders:
            if stage.kind == "splits" and measured[stage.key].works:
                data = open_dataset(self.scratch / paths.dataset(stage.name, seed))
                images = {role: len(rows) for role, rows in data.roles.items()}
                samples[stage.name] = DatasetSize(images, data.seen_classes, data.image_shape[0], data.image_shape[2])
        outputs = {
            stage.key: sum(folder_bytes(self.scratch / each) for each in OUTPUTS[stage.kind](stage.name, seed).values())
            for stage, _ in orders
            if stage.kind in OUTPUTS
        }
        settings = {stage.key: order.settings for stage, order in orders}
        most = {order.settings.dataset: order.most_embedded for _, order in orders if order.most_embedded}
        return Rehearsed(measured, settings, samples, full, outputs, _start_seconds(self.root), most)


def _start_seconds(root: Path) -> float:
    """How long a stage's command takes to begin: it says its usage and ends."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "stages"], cwd=root, capture_output=True, check=False)
    return time.perf_counter() - began


def _why(timed: Measured) -> str:
    return "" if timed.works else f": {timed.problem}"
