"""Is there hope? The first pre-training and the first cell of a run beside what was published and kept before.

Read from files alone, long before the run has ended. What lies far from what it should be is said loudly, with the
usual suspects: facts that the dataset doctor knows of the data.
"""

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro import paths
from repro.errors import BadInput
from stages.settings.planned import STANDARD, planned
from stages.settings.yaml_files import read_mapping

if TYPE_CHECKING:  # read when it is needed: it is slow to load
    from repro.results.store import Reading

AUTHORS_CHECK = 55.0  # nearest prototypes (Euclidean) of 5-way 1-shot tasks on Mini: the authors' own sanity check
PAPER_SIZE = 84  # pixels; smaller images do not reach what was published
FAR = 10.0  # points from what is expected
NEAR_CHANCE = 1.5  # times what guessing gives


@dataclass(frozen=True)
class Value:
    """A number of this run in percent, what stands beside it, and which of those it should be near."""

    what: str
    dataset: str
    seed: int
    found: float
    chance: float
    beside: dict[str, float] = field(default_factory=dict)
    expected: float | None = None

    @property
    def far_off(self) -> str:
        """In which way; empty where it is as it should be, or nothing says how it should be."""
        if self.found < NEAR_CHANCE * self.chance:
            return f"hardly above guessing ({self.chance:.1f} %)"
        if self.expected is None or abs(self.found - self.expected) <= FAR:
            return ""
        return f"{abs(self.found - self.expected):.1f} points {'below' if self.found < self.expected else 'above'}"

    def lines(self) -> Iterator[str]:
        """What is said of it."""
        beside = "".join(f"; {name} {value:.1f} %" for name, value in self.beside.items())
        yield f"{self.what}: {self.found:.1f} %{beside}"
        if self.far_off:
            yield f"!!! FAR OFF: {self.what} is {self.far_off}. Usual suspects: {'; '.join(suspects(self))}"


def first_pretraining() -> Value | None:
    """The best accuracy of nearest prototypes on validation tasks."""
    from tools.watching.kept import of_editions

    for file in _oldest(Path("models") / "pretrained", "curve.csv"):
        name, seed = file.parent.parent.name, int(file.parent.name)
        rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
        found = [float(value) for row in rows for key, value in row.items() if key.startswith("val_") and value]
        settings = _planned("pretrain", name)
        if not found or not settings:
            continue
        dataset, way, shot = settings["dataset"], settings["way"], settings["shot"]
        is_check = dataset == "mini" and (way, shot) == (5, 1)
        beside = {"the authors' own check at the paper's scale": AUTHORS_CHECK} if is_check else {}
        kept = of_editions(_prototypes(dataset, way, shot)) if name == f"{dataset}-{STANDARD}" else {}
        beside |= {f"test tasks of {edition}": value for edition, value in kept.items()}
        what = f"pretrain {name}, seed {seed}: nearest prototypes on validation tasks of {way} ways and {shot} shots"
        expected = _own(kept, AUTHORS_CHECK if is_check and _is_papers(dataset) else None)
        return Value(what, dataset, seed, max(found), 100 / way, beside, expected)
    return None


def first_cell() -> Value | None:
    """HM at its first number of ways, beside the paper's and every edition's."""
    from repro.results.records import group_name
    from tools.watching.kept import of_editions

    for file in _oldest(paths.ALL_RESULTS, "metrics.json"):
        name, seed = file.parent.parent.name, int(file.parent.name)
        settings = _planned("evaluate", name)
        if not settings:
            continue
        way, dataset = settings["way"], settings["dataset"]
        measured = json.loads(file.read_text(encoding="utf-8")).get(group_name("gfsl", way), {})
        if "hm" not in measured:
            continue
        published, kept = _published_hm(settings, name), of_editions(_reading(settings, name))
        beside = {**({"published": published} if published is not None else {}), **kept}
        expected = _own(kept, published if _is_papers(dataset) else None)
        # A method that never names an unseen class has an HM of 0, as published; that is no failure.
        chance = 100 / (_seen(dataset, seed) + way) if expected is None or expected > FAR else 0.0
        what = f"evaluate {name}, seed {seed}: HM of {way} ways"
        return Value(what, dataset, seed, float(measured["hm"]["mean"]), chance, beside, expected)
    return None


FINDERS: dict[str, Callable[[], Value | None]] = {"pretrain": first_pretraining, "evaluate": first_cell}


class Hope:
    """What is said once in a call: after the first stage of each kind."""

    def __init__(self) -> None:
        self._shown: set[str] = set()

    def __call__(self, group: str) -> list[str]:
        """The lines after a stage of this group has run, `pretrain_cosine` for example; mostly none."""
        kind = group.partition("_")[0]
        if kind in self._shown or kind not in FINDERS or group.endswith(paths.EXPERIMENT):
            return []
        self._shown.add(kind)
        try:
            value = FINDERS[kind]()
            return list(value.lines()) if value else []
        # A file that another run is just replacing, or one of somebody else's: the run goes on without the words.
        except (BadInput, OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return []


def suspects(value: Value) -> list[str]:
    """What is usually wrong, and what the dataset doctor knows of these images."""
    folder = paths.dataset(value.dataset, value.seed)
    facts = json.loads((folder / "dataset.json").read_text(encoding="utf-8"))
    provenance = facts["provenance"]
    found = [f"{facts['images']:,} images at {facts['image_shape'][0]} px"]
    if "crop" in provenance:
        found.append(f"crop is {provenance['crop']} (the paper's code crops center224)")
    found += _doctor(provenance)
    if value.expected is not None and value.found > value.expected:
        return [*found, "images of test classes among the training ones (`tools/doctor --dataset`)"]
    return [
        *found,
        "classes mixed up in the lists (`tools/doctor --dataset`)",
        "a rate that is too high: see its curve",
    ]


def _doctor(provenance: dict[str, Any]) -> list[str]:
    if "extra" not in provenance:  # images that were drawn, not brought
        return []
    from repro.preparation.doctor.variants import variant

    return [f"{each.check}: {each.seen}" for each in variant(provenance)]


def _oldest(folder: Path, name: str) -> list[Path]:
    """These files of all replicates, the first that was finished first."""
    files = [file for file in folder.glob(f"*/*/{name}") if file.parent.name.isdecimal()]
    return sorted(files, key=lambda file: file.stat().st_mtime)


def _planned(stage: str, name: str) -> dict[str, Any]:
    return planned(stage, name) if paths.settings(stage, name).is_file() else {}


def _is_papers(dataset: str) -> bool:
    """Whether its images are those of the paper, as large."""
    settings = _planned("splits", dataset)
    return settings.get("size") == PAPER_SIZE and settings.get("source") != "glyphs"


def _benchmark() -> str:
    about = read_mapping(paths.PARAMS, "the parameters of the pipeline")["benchmark"]
    return f"{about['name']} benchmark, scale {about['scale']}"


def _seen(dataset: str, seed: int) -> int:
    facts = json.loads((paths.dataset(dataset, seed) / "dataset.json").read_text(encoding="utf-8"))
    return sum(each["split"] == "seen" for each in facts["classes"])


def _published_hm(settings: dict[str, Any], name: str) -> float | None:
    from repro.editions.sides import published_side

    side = published_side(paths.PAPER / "published.yaml", {settings["dataset"]: max(settings["ways"])})
    found = side.mean(_reading(settings, name))
    return found.mean if found else None


def _own(kept: dict[str, float], otherwise: float | None) -> float | None:
    """What an edition of this benchmark has, if there is one."""
    return next((value for label, value in kept.items() if label.endswith(f"({_benchmark()})")), otherwise)


def _prototypes(dataset: str, way: int, shot: int) -> "Reading":
    """Nearest prototypes of a standard pre-training on test tasks: on unseen classes MC + kNN is that."""
    from repro.results.store import Cell, Reading

    return Reading(Cell(dataset, "mc_knn", shot), "fsl", way, "u_u")


def _reading(settings: dict[str, Any], name: str) -> "Reading":
    from repro.results.store import Cell, Reading

    main = Cell(settings["dataset"], settings["method"], settings["shot"])
    variant = name.removeprefix(main.name).removeprefix("-")
    return Reading(Cell(main.dataset, main.method, main.shot, variant), "gfsl", settings["way"], "hm")
