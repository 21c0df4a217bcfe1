"""An edition: the folder below paper/editions that keeps what a finished run rendered, and all that renders it again.

`edition.json` says where it comes from and what its datasets and tasks are; the other files are what their names say.
A seal names every file's content.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import with_config

from repro import paths
from repro.editions.tasks import DrawnList, Layout, RedrawnContents
from repro.errors import BadInput, one_line
from repro.files import check_seal
from repro.options import STRICT, checked

EDITIONS = paths.PAPER / "editions"
ABOUT, SAMPLES = "edition.json", "samples.safetensors"
NAME = re.compile("[a-z0-9][a-z0-9_-]{0,40}")
# What bytes of rendered files may depend on.
LIBRARIES = ("matplotlib", "numpy", "pyarrow", "scipy", "torch")


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Counts of a dataset as its first seed has it, for captions."""

    seen: int
    val: int
    unseen: int
    images: dict[str, int]


@with_config(STRICT)
@dataclass(frozen=True, kw_only=True)
class About:
    """What `edition.json` says; `layouts` are by dataset and seed, `lists` by digest.

    `copied` are rendered files that take more than the kept records, and are taken over as they are. `same_classes`:
    its seeds share classes and images. `joined`: the commits at which parts of it were kept, by their seeds.
    """

    name: str
    benchmark: str
    remark: str
    seeds: tuple[int, ...]
    commit: str
    libraries: dict[str, str]
    copied: tuple[str, ...]
    same_classes: bool
    datasets: dict[str, Dataset]
    layouts: dict[str, Layout]
    lists: dict[str, DrawnList]
    joined: dict[str, str] = field(default_factory=dict)


class Edition:
    """One folder, opened and checked against its seal."""

    def __init__(self, folder: Path) -> None:
        """Raises BadInput where a file is not what was kept."""
        remedy = f"get it anew with `git checkout {folder}`"
        check_seal(folder, remedy=remedy)
        self.folder = folder
        try:
            content = json.loads((folder / ABOUT).read_bytes())
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{folder / ABOUT}: not JSON ({one_line(error)}); {remedy}") from error
        self.about = checked(About, content, str(folder / ABOUT))

    @property
    def name(self) -> str:
        return self.folder.name

    def contents(self) -> RedrawnContents:
        """Its task lists."""
        return RedrawnContents(self.about.layouts, self.about.lists)

    def claims(self) -> dict[str, Any]:
        """Judged claims by key, as `claims.json` has them."""
        found: dict[str, Any] = self._read("claims.json")["claims"]
        return found

    def summary(self) -> str:
        """How many claims hold, in a sentence."""
        return str(self._read("claims.json")["summary"])

    def steps(self) -> dict[str, dict[str, Any]]:
        """Every step behind its records by key, as `provenance.json` has them."""
        found: dict[str, dict[str, Any]] = self._read("provenance.json")["steps"]
        return found

    def origins(self) -> dict[str, Any]:
        """The chain of steps behind every record, by the record's folder below all results."""
        steps = self.steps()

        def chain(key: str) -> dict[str, Any]:
            step = {name: value for name, value in steps[key].items() if name != "run"}
            return step | {"inputs": {role: chain(inner) for role, inner in step["inputs"].items()}}

        cells = self._read("provenance.json")["cells"]
        return {
            f"{cell}/{seed}": chain(record["evaluation"])
            for cell, seeds in cells.items()
            for seed, record in seeds.items()
            if record["evaluation"]
        }

    def _read(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / name).read_bytes())
        return found


def kept_edition(name: str) -> Edition:
    """The one of that name in the repository; raises BadInput for any other name, a path too."""
    if name not in names():
        known = ", ".join(names()) or "none yet: `tools/edition keep NAME` makes one"
        raise BadInput(f"edition is {name!r:.60}, expected one of those in {EDITIONS}: {known}")
    return Edition(EDITIONS / name)


def names(folder: Path = EDITIONS) -> list[str]:
    """Every edition that is kept."""
    return sorted(file.parent.name for file in folder.glob(f"*/{ABOUT}"))
