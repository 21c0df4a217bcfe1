"""Everything a killed training needs to go on as if nothing had happened: tensors in safetensors, facts in JSON.

A checkpoint is a folder `step-<n>` of its own, complete before it gets its name; older ones go after that, so a kill at
any moment leaves one whole checkpoint. Randomness and data order need no room of their own: every draw of step n is a
function of (seed, purpose, n), so the seed among the settings and the step number are their whole state.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from repro.errors import BadInput
from repro.files import check_seal, discard, exclusive_folder, seal, whole_folder
from repro.models.weights import read_tensors, write_tensors
from repro.training.distributed import World

FORMAT = 3
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Best:
    """The best validation so far and the step it was reached at."""

    value: float
    step: int


@dataclass(frozen=True)
class Snapshot:
    """The state of a training after `step` steps.

    `best` is by measure, and empty before the first validation; `best_weights` are named `measure/weight`.
    """

    step: int
    best: dict[str, Best]
    loss_scale: dict[str, Any]
    weights: dict[str, Tensor]
    best_weights: dict[str, Tensor]
    momentum: dict[str, Tensor]
    history: dict[str, Tensor]


STATE = "state.json"
TENSORS = ("weights", "best_weights", "momentum", "history")
FILES = (STATE, *(f"{name}.safetensors" for name in TENSORS))


def write_checkpoint(folder: Path, snapshot: Snapshot, settings: Mapping[str, Any]) -> None:
    """Write a snapshot beside the earlier one, then remove that one and whatever a kill left half-written."""
    target = folder / f"step-{snapshot.step:09d}"
    with whole_folder(target) as partial:
        for name in TENSORS:
            write_tensors(getattr(snapshot, name), partial / f"{name}.safetensors")
        facts = {
            "format": FORMAT,
            "step": snapshot.step,
            "best": {measure: vars(best) for measure, best in snapshot.best.items()},
            "loss_scale": snapshot.loss_scale,
            "settings": settings,
        }
        (partial / STATE).write_text(json.dumps(facts, indent=1) + "\n")
        seal(partial, *FILES)
    _remove_others(target)


def read_checkpoint(folder: Path, settings: Mapping[str, Any]) -> Snapshot | None:
    """The newest snapshot, or None where there is none.

    Raises BadInput where the files are damaged, or were written with other settings than these.
    """
    found = sorted(folder.glob("step-*"))
    if not found:
        return None
    try:
        facts = json.loads((found[-1] / STATE).read_text())
        step, loss_scale = int(facts["step"]), dict(facts["loss_scale"])
        written = dict(facts["settings"])
        known = facts["format"] == FORMAT
        best = {measure: Best(**values) for measure, values in facts["best"].items()} if known else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{found[-1]}: not a checkpoint ({error!r}); delete {folder} to start this training anew"
        raise BadInput(message) from error
    if not known:
        raise BadInput(f"{found[-1]}: format {facts['format']}, expected {FORMAT}; delete {folder} to start anew")
    _require_same(written, settings, folder)
    check_seal(found[-1], *FILES, remedy=f"delete {folder} to start this training anew")
    logger.info("resuming from %s", found[-1])
    tensors = {name: read_tensors(found[-1] / f"{name}.safetensors") for name in TENSORS}
    return Snapshot(step, best, loss_scale, **tensors)


@contextmanager
def own_checkpoints(folder: Path, world: World) -> Iterator[None]:
    """Hold the folder for one training, in the first process; remove it once what was trained is stored for good.

    Raises BadInput where another training holds it.
    """
    if world.rank:
        yield
        return
    with exclusive_folder(folder):
        yield
        for checkpoint in folder.iterdir():
            discard(checkpoint)


def _remove_others(target: Path) -> None:
    for other in target.parent.iterdir():
        if other != target and other.name.lstrip(".").startswith("step-"):
            discard(other)


def _require_same(written: Mapping[str, Any], settings: Mapping[str, Any], folder: Path) -> None:
    before, now = dict(_flat(written)), dict(_flat(json.loads(json.dumps(settings))))
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key):
            raise BadInput(
                f"{folder}: its checkpoint was written with {key} = {before.get(key)!r}, now it is {now.get(key)!r}; "
                f"restore the setting, or delete {folder} to start this training anew"
            )


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
