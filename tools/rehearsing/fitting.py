"""The largest step that fits into memory, by trying: forward and backward of a number of images in a fresh process."""

import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

import torch

from repro.models import create_backbone
from repro.models.device import Acceleration, pick_device
from stages.settings.params import Named
from tools.rehearsing.child import is_out_of_memory
from tools.rehearsing.measuring import Measured
from tools.rehearsing.shortening import images_of_step
from tools.rehearsing.sizes import DatasetSize
from tools.rehearsing.work import Stage, Work

Try = Callable[[int], bool]


@dataclass(frozen=True)
class Step:
    """A training step's images, and what they pass through."""

    backbone: Named
    images: int
    size: int
    channels: int
    precision: Acceleration
    device: str
    memory_limit: int | None = None  # of the process's address space, in bytes

    def of(self, images: int) -> "Step":
        """This step with another number of images."""
        return replace(self, images=images)


def largest(fits: Try, wanted: int) -> int:
    """The largest number up to `wanted` that fits, to within a sixteenth of it; 0 where none does."""
    if fits(wanted):
        return wanted
    low, high = 0, wanted
    while high - low > max(1, wanted // 16):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def try_step(step: Step, answer: Connection) -> None:
    """In a process of its own: tell whether the step's memory suffices."""
    if step.memory_limit:
        resource.setrlimit(resource.RLIMIT_AS, (step.memory_limit, step.memory_limit))
    device = pick_device(step.device)
    try:
        network, _ = create_backbone(step.backbone.name, step.channels, **step.backbone.options)
        step.precision.place(network, device)
        images = torch.zeros(step.images, step.channels, step.size, step.size, device=device)
        with step.precision.autocast(device):
            features = network(images.contiguous(memory_format=torch.channels_last))
        features.float().sum().backward()
        answer.send(True)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        answer.send(False)


def fits_in(processes: Any, step: Step) -> bool:
    """Whether it does; a process that the system kills does not."""
    ours, theirs = processes.Pipe(duplex=False)
    process = processes.Process(target=try_step, args=(step, theirs))
    process.start()
    theirs.close()
    try:
        return bool(ours.recv())
    except EOFError:
        return False
    finally:
        process.join()


def steps_of(work: Work, full: dict[str, DatasetSize], device: torch.device) -> Iterator[tuple[Stage, Step]]:
    """What every training puts through its backbone at once, the largest first."""
    found = []
    for stage in [*work.of("pretrain"), *work.of("train")]:
        size = full[stage.settings.dataset]
        if images := images_of_step(stage.settings, size.seen):
            one = work.resolver.backbone(stage.settings.dataset)
            step = Step(one, images, size.size, size.channels, work.params.precision, str(device))
            found.append((stage, step))
    yield from sorted(found, key=lambda each: -each[1].images)


def advice(stage: Stage, found: int, wanted: int) -> str:
    """What to change where a step of `wanted` images does not fit and one of `found` does."""
    amp = "" if stage.settings.precision.amp != "none" else ", or set precision.amp to bf16"
    most = f"{found} of its {wanted} images a step fit" if found else f"not even one of its {wanted} images a step fits"
    if stage.kind == "pretrain":
        what = f"set pretraining.batch to {found}" if found else "choose a smaller backbone"
    else:
        what = f"lower the options of {stage.settings.method} that draw images (queries, free, tasks, classes)"
    return f"{stage.title}: {most}; {what}{amp}"


def memory_advice(timed: Measured, stage: Stage) -> str:
    """What to change where an evaluation ran out of memory."""
    have = stage.settings.machine.memory_mb
    return f"{timed.stage} {timed.name}: out of memory; lower machine.memory_mb from {have} to {max(1, have // 2)}"
