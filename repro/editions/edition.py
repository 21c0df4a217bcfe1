"""An edition: the folder below paper/editions that keeps what a finished run rendered, and all that renders it again.

`edition.json` says where it comes from and what its datasets and tasks are; the other files are what their names say.
A seal names every file's content.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, with_config

from repro import paths
from repro.editions.tasks import DrawnList, Layout, RedrawnContents
from repro.errors import BadInput, one_line
from repro.files import check_seal
from repro.options import STRICT, checked, in_form

EDITIONS = paths.PAPER / "editions"
ABOUT, SAMPLES = "edition.json", "samples.safetensors"
NAME = re.compile("[a-z0-9][a-z0-9_-]{0,40}")
# What bytes of rendered files may depend on.
LIBRARIES = ("matplotlib", "numpy", "pyarrow", "scipy", "torch")
PLAIN = "[A-Za-z0-9][A-Za-z0-9_.-]*"  # names of datasets, cells and files: they lead nowhere else


def require_printable(value: Any) -> Any:
    """The value; raises ValueError where it holds text that a terminal would obey, or a line break, anywhere."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str) and not one.isprintable():
            raise ValueError(f"{one!r:.60} is no text that can be printed on a line")
        if isinstance(one, dict):
            waiting += [*one, *one.values()]
        elif isinstance(one, list | tuple):
            waiting += one
    return value


Plain = Annotated[str, in_form(PLAIN, "letters, digits, . _ or -, the first a letter or digit")]
Words = Annotated[str, AfterValidator(require_printable)]


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

    name: Words
    benchmark: Words
    remark: Words
    seeds: tuple[int, ...]
    commit: Words
    libraries: dict[str, str]
    copied: tuple[Plain, ...]
    same_classes: bool
    datasets: dict[Plain, Dataset]
    layouts: dict[str, Layout]
    lists: dict[str, DrawnList]
    joined: dict[Words, Words] = field(default_factory=dict)


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
        """Judged claims by key, as `claims.json` has them; raises BadInput where it does not."""
        with self._as_written("claims.json") as content:
            found: dict[str, Any] = content["claims"]
            for claim in found.values():
                texts = (claim["statement"], claim["shown_in"], claim["published"], claim["verdict"])
                texts += tuple(claim["decided"][key] for key in ("effect", "interval", "published"))
                if not all(isinstance(text, str) for text in texts):
                    raise TypeError("a claim without words")
            return found

    def summary(self) -> str:
        """How many claims hold, in a sentence."""
        with self._as_written("claims.json") as content:
            return str(content["summary"])

    def steps(self) -> dict[str, dict[str, Any]]:
        """Every step behind its records by key, as `provenance.json` has them."""
        with self._as_written("provenance.json") as content:
            found: dict[str, dict[str, Any]] = content["steps"]
            return found

    def origins(self) -> dict[str, Any]:
        """The chain of steps behind every record, by the record's folder below all results."""

        def chain(key: str) -> dict[str, Any]:
            step = {name: value for name, value in steps[key].items() if name != "run"}
            return step | {"inputs": {role: chain(inner) for role, inner in step["inputs"].items()}}

        with self._as_written("provenance.json") as content:
            steps = content["steps"]
            return {
                f"{cell}/{seed}": chain(record["evaluation"])
                for cell, seeds in content["cells"].items()
                for seed, record in seeds.items()
                if record["evaluation"]
            }

    @contextmanager
    def _as_written(self, name: str) -> Iterator[dict[str, Any]]:
        """Give the content of a file; raises BadInput where it, or what the block finds in it, is not as written."""
        file = self.folder / name
        try:
            yield require_printable(json.loads(file.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            message = f"{file}: not what an edition keeps ({one_line(repr(error)):.100})"
            raise BadInput(f"{message}; get it anew with `git checkout {self.folder}`") from error


def kept_edition(name: str) -> Edition:
    """The one of that name in the repository; raises BadInput for any other name, a path too."""
    if name not in names():
        known = ", ".join(names()) or "none yet: `tools/edition keep NAME` makes one"
        raise BadInput(f"edition is {name!r:.60}, expected one of those in {EDITIONS}: {known}")
    return Edition(EDITIONS / name)


def names(folder: Path = EDITIONS) -> list[str]:
    """Every edition that is kept."""
    return sorted(file.parent.name for file in folder.glob(f"*/{ABOUT}"))
