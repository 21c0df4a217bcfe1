"""Whether every step fits into memory, and what to change where one does not."""

import torch

from repro.data.loading import RESIDENT_BYTES
from tools.benchmarks.costs import backbone
from tools.rehearsing.checks import memory_of
from tools.rehearsing.choosing import Chosen
from tools.rehearsing.fitting import Step, advice, fits_in, largest, memory_advice, steps_of
from tools.rehearsing.predicting import Rehearsed
from tools.rehearsing.running import Rehearsal
from tools.rehearsing.sizes import DatasetSize
from tools.rehearsing.work import Key, Stage


def too_large_steps(rehearsal: Rehearsal, full: dict[str, DatasetSize]) -> dict[Key, str]:
    """Before anything else runs: the largest step through each backbone, tried on a GPU and counted on a CPU."""
    tried: set[str] = set()
    found: dict[Key, str] = {}
    for stage, step in steps_of(rehearsal.work, full, rehearsal.device):
        if step.backbone.name in tried:
            continue
        tried.add(step.backbone.name)
        if sentence := _too_large(rehearsal, stage, step):
            found[stage.key] = sentence
            rehearsal.tell(f"warning: {sentence}")
    return found


def _too_large(rehearsal: Rehearsal, stage: Stage, step: Step) -> str:
    if rehearsal.device.type == "cuda":
        return largest_that_fits(rehearsal, stage, step) if not fits_in(rehearsal.processes, step) else ""
    kept, have = step.images * backbone(step.backbone.name, step.size).kept, memory_of(rehearsal.device)
    if kept <= have:
        return ""
    message = f"its {step.images} images a step keep {kept / 1e9:.1f} GB, {have / 1e9:.1f} GB are free"
    return advice(stage, int(step.images * have / kept), step.images) + f" (counted: {message})"


def largest_that_fits(rehearsal: Rehearsal, stage: Stage, step: Step) -> str:
    """A sentence with the largest number of images that does, found by trying."""
    found = largest(lambda images: fits_in(rehearsal.processes, step.of(images)), step.images)
    return advice(stage, found, step.images)


def memory_lines(rehearsal: Rehearsal, rehearsed: Rehearsed, chosen: Chosen, known: dict[Key, str]) -> list[str]:
    """A sentence for each stage that ran out of memory, or will once its whole dataset lies on the GPU."""
    lines = list(known.values())
    steps = {stage.key: step for stage, step in steps_of(rehearsal.work, dict(rehearsed.full), rehearsal.device)}
    for stage in chosen.stages:
        timed = rehearsed.measured[stage.key]
        if timed.memory and stage.key in steps and stage.key not in known:
            lines.append(largest_that_fits(rehearsal, stage, steps[stage.key]))
        elif timed.memory and stage.kind == "evaluate":
            lines.append(memory_advice(timed, stage))
        elif stage.kind in ("pretrain", "train") and (more := _resident(stage, rehearsed)):
            lines += _too_large_later(stage, timed.gpu_bytes + more, rehearsal.device)
    return lines


def _resident(stage: Stage, rehearsed: Rehearsed) -> int:
    """Bytes by which a dataset that is held on the GPU is larger than its sample."""
    name = stage.settings.dataset
    if not rehearsed.measured[stage.key].gpu_bytes or name not in rehearsed.samples:
        return 0
    full, sample = rehearsed.full[name].packed, rehearsed.samples[name].packed
    return full - sample if full <= RESIDENT_BYTES else 0


def _too_large_later(stage: Stage, peak: int, device: torch.device) -> list[str]:
    have = torch.cuda.get_device_properties(device).total_memory
    if peak <= have:
        return []
    message = (
        f"{stage.title}: with all images of its dataset it takes {peak / 1e9:.1f} GB, the GPU has {have / 1e9:.1f}"
    )
    return [f"{message}; lower pretraining.batch or the method's images a step, or set precision.amp to bf16"]
