"""What a command line asks for, and the file that `plan` wrote about it: plain values, read without torch."""

import json
import re
from dataclasses import dataclass
from typing import Any

from repro import paths
from repro.errors import BadInput

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")  # of a dataset, backbone or cell: no path, no option
REPLICATED = ("splits", "episodes", "pretrain", "train", "evaluate")  # the stages with a replicate for each seed
ALONE = ("plan", "paper")  # those without a name
STAGES = (*ALONE, *REPLICATED, "summary")
STANDARD = "standard"  # the role of the pre-training that most methods start from


@dataclass(frozen=True)
class Asked:
    """`python -m stages STAGE NAME [--seed SEED]`."""

    stage: str
    name: str
    seed: int | None = None

    @property
    def words(self) -> list[str]:
        """The same as arguments."""
        return [self.stage, self.name, *([] if self.seed is None else ["--seed", str(self.seed)])]


def asked(stage: str, arguments: list[str]) -> Asked:
    """What the arguments after the stage's name say; raises BadInput."""
    match arguments:
        case [name] if NAME.fullmatch(name):
            return Asked(stage, name)
        case [name, "--seed", number] if NAME.fullmatch(name) and re.fullmatch("0|[1-9][0-9]{0,8}", number):
            return Asked(stage, name, int(number))
    got = " ".join(arguments) or "no name"
    raise BadInput(f"got {got}, expected one name: python -m stages {stage} NAME [--seed N]")


def planned(stage: str, name: str) -> dict[str, Any]:
    """The content of a stage's settings file; raises BadInput where there is none."""
    file = paths.settings(stage, name)
    if file.is_dir():
        raise BadInput(f"{file}: is a folder, expected the file that `plan` writes; move it away, run `dvc repro plan`")
    if not file.is_file():
        known = ", ".join(sorted(each.stem for each in file.parent.glob("*.json"))) or "nothing planned yet"
        message = f"got the name {name!r}, expected one of: {known}"
        raise BadInput(f"{message}; `dvc repro plan` reads them from {paths.PARAMS} and {paths.GRID}")
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{file}: not what `plan` writes ({error}); run `dvc repro plan`") from error
    seeds = content.get("seeds") if isinstance(content, dict) else None
    if not (isinstance(seeds, list) and seeds and all(isinstance(seed, int) for seed in seeds)):
        raise BadInput(f"{file}: lists no seeds, expected what this version plans; run `dvc repro plan`")
    found: dict[str, Any] = content
    return found


def seeds_of(ask: Asked, content: dict[str, Any]) -> list[int]:
    """The seeds to compute: the one that was asked for, or all; raises BadInput where it is not listed."""
    seeds: list[int] = content["seeds"]
    if ask.seed is None:
        return seeds
    if ask.seed not in seeds:
        listed = ", ".join(map(str, seeds))
        message = f"got --seed {ask.seed}, expected one of {listed}"
        raise BadInput(f"{message}; add it to `seeds` in {paths.PARAMS}, then run `dvc repro plan`")
    return [ask.seed]
