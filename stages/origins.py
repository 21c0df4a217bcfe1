"""Where a folder's content comes from: `origin.json`, which holds those of its inputs down to the dataset.

It names no run, time or commit, so equal results have equal origins everywhere (`repro/results/origins.py` reads it).
And it tells a replicate that need not be made again: a whole folder with the origin that it would get now. Plain values
only, so that a stage's command can ask before torch is loaded.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro import paths
from repro.errors import BadInput
from repro.files import add_to_seal, damage, whole_file
from repro.paths import ORIGIN

if TYPE_CHECKING:
    from stages.settings.kinds import ReplicateSettings

Values = Mapping[str, Any]  # what `plan` wrote for a stage
# What each stage makes for one seed, by the name of the content.
OUTPUTS: dict[str, Callable[[str, int], dict[str, Path]]] = {
    "splits": lambda name, seed: {name: paths.dataset(name, seed)},
    "episodes": lambda name, seed: {f"{name}-{split}": paths.episodes(name, split, seed) for split in ("val", "test")},
    "pretrain": lambda name, seed: {name: paths.pretrained(name, seed)},
    "train": lambda name, seed: {name: paths.model(name, seed)},
    "evaluate": lambda name, seed: {name: paths.results(name, seed)},
}
# What it is made from, by role.
INPUTS: dict[str, Callable[[Values, int], dict[str, Path]]] = {
    "splits": lambda values, seed: {},
    "episodes": lambda values, seed: {"dataset": paths.dataset(values["dataset"], seed)},
    "pretrain": lambda values, seed: {
        "dataset": paths.dataset(values["dataset"], seed),
        "tasks": paths.episodes(values["dataset"], "val", seed),
    },
    "train": lambda values, seed: {
        "pretrained": paths.pretrained(values["pretrained"], seed),
        "tasks": paths.episodes(values["dataset"], "val", seed),
    },
    "evaluate": lambda values, seed: {
        "model": paths.replicate(Path(values["model"]), seed),
        "tasks": paths.episodes(values["dataset"], "test", seed),
    },
}


def write_origin(
    folder: Path, stage: str, cell: str, settings: "ReplicateSettings", output: str
) -> dict[str, dict[str, str]]:
    """Add its origin to a sealed folder; `output` is the content hash of what it holds.

    What comes back belongs into the run's result: it leads from the content to the run.
    """
    from stages.settings.files import plain

    _add(folder, expected_step(stage, cell, plain(settings), settings.seed) | {"output": output})
    return {"outputs": {cell: output}}


def write_import(folder: Path, cell: str, seed: int, settings: Values, code: str, output: str, dataset: Path) -> None:
    """Add its origin to a sealed folder that no stage made, but `tools/import_weights`."""
    step = {"stage": "import", "cell": cell, "seed": seed, "settings": settings, "code": code, "output": output}
    _add(folder, step | {"inputs": {"dataset": _read(dataset)}})


def is_made(stage: str, name: str, values: Values, seed: int) -> bool:
    """Tell whether all that the stage makes for this seed is there, whole, and made from what it would be made from."""
    return is_current(stage, name, values, seed) and not any(map(damage, OUTPUTS[stage](name, seed).values()))


def is_current(stage: str, name: str, values: Values, seed: int) -> bool:
    """The same by the origins alone: whether the contents are whole is not looked at, so nothing large is read."""
    try:
        return all(
            _without_output(folder) == expected_step(stage, cell, values, seed)
            for cell, folder in OUTPUTS[stage](name, seed).items()
        )
    except BadInput:
        return False


def expected_step(stage: str, cell: str, values: Values, seed: int) -> dict[str, Any]:
    """The origin of what a stage makes now, without its content hash; raises BadInput where an input has none."""
    settings = {key: value for key, value in values.items() if key not in ("seed", "seeds", "code")}
    return {
        "stage": stage,
        "cell": cell,
        "seed": seed,
        "code": values["code"],
        "settings": json.loads(json.dumps(settings)),  # lists, as a file has them
        "inputs": {role: _read(folder) for role, folder in INPUTS[stage](values, seed).items()},
    }


def _add(folder: Path, step: Values) -> None:
    with whole_file(folder / ORIGIN) as partial:
        partial.write_text(json.dumps(step, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    add_to_seal(folder, ORIGIN)


def _without_output(folder: Path) -> dict[str, Any]:
    found = _read(folder)
    return {key: value for key, value in found.items() if key != "output"} if isinstance(found, dict) else {}


def _read(folder: Path) -> Any:
    try:
        return json.loads((folder / ORIGIN).read_bytes())
    except (OSError, ValueError) as error:
        raise BadInput(f"{folder}: no readable {ORIGIN} ({error}); run the stage that makes it again") from error
