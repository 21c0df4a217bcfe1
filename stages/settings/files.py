"""`settings/<stage>/<name>.json`: what the stage `plan` writes, DVC compares, and a stage reads.

A file lists `seeds`; each replicate is run with one of them as its `seed`. `machine` is left out of the file, because
no result depends on it, and read from params.yaml when the stage runs.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from repro import paths
from repro.errors import BadInput
from repro.files import whole_folder
from repro.options import checked
from stages.settings.grid import read_grid
from stages.settings.kinds import KINDS, Settings
from stages.settings.machine import machine
from stages.settings.params import read_params
from stages.settings.planned import REPLICATED, asked, planned, seeds_of
from stages.settings.resolving import Resolver

Kind = TypeVar("Kind", bound=Settings)


def write_all(folder: Path) -> int:
    """Write the settings of every stage; gives how many there are. Raises BadInput where they do not fit."""
    resolver = Resolver(read_params(paths.PARAMS), read_grid())
    written = list(resolver.all())
    with whole_folder(folder) as partial:
        for stage, name, settings in written:
            file = partial / stage / f"{name}.json"
            file.parent.mkdir(exist_ok=True)
            content = planned_content(settings, resolver.params.seeds)
            file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return len(written)


def planned_content(settings: Settings, seeds: tuple[int, ...]) -> dict[str, Any]:
    """What the file holds: what all replicates share, and their seeds."""
    content = plain(settings)
    content.pop("seed", None)
    return content | {"seeds": seeds}


def plain(settings: Settings) -> dict[str, Any]:
    """All that decides a result, as plain values."""
    content = asdict(settings)
    del content["machine"]
    return content


def read_settings(kind: type[Kind], arguments: list[str]) -> Kind:
    """The settings of the stage that the arguments name, `NAME [--seed N]`; raises BadInput where there are none."""
    (stage,) = [name for name, each in KINDS.items() if each is kind]
    ask = asked(stage, arguments)
    content = planned(stage, ask.name)
    if stage in REPLICATED:
        seeds = seeds_of(ask, content)
        if len(seeds) > 1:
            listed = ", ".join(map(str, seeds))
            raise BadInput(f"got no --seed, expected one of {listed}: a process computes one replicate")
        content["seed"] = seeds[0]
        del content["seeds"]
    return checked(kind, {**content, "machine": asdict(machine())}, str(paths.settings(stage, ask.name)))
