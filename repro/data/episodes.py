"""Evaluation tasks as index tensors: drawn once per dataset, way and shot, stored, and shared by all methods.

A task holds `way` classes with `shot` support and `query` query images each, and way × query images of the seen
classes. Images are named by their row in the dataset's manifest, classes by their label.

Where a dataset has domains, the unseen images of a task come from one domain; where every class has images in every
domain, the seen queries come from that domain too. The split "seen" gives tasks over the seen classes themselves:
support from their training images, queries from `seen_test`, no further seen queries, all domains at once.

Dimensions: T tasks, W ways, K shots, Q queries, C classes, G domains or groups of images, I images of a group,
R rows of a draw.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from repro.data.dataset import Dataset
from repro.data.seeding import generator
from repro.errors import BadInput
from repro.files import whole_file

# Which roles the support, the queries and the seen queries of a split's tasks come from.
ROLES_OF_TASKS = {
    "val": ("val", "val", "seen_val"),
    "test": ("test", "test", "seen_test"),
    "seen": ("train", "seen_test", "seen_test"),
}
# Tasks are drawn in blocks, each with a generator of its own: memory stays bounded, and a longer list begins with
# the shorter one. Changing this number changes every task.
BLOCK = 500


@dataclass(frozen=True)
class TaskSpec:
    """Which tasks to draw: `tasks` of them from `split` ("val", "test" or "seen"); the other numbers are per task."""

    split: str
    way: int
    shot: int
    tasks: int
    query: int = 15

    def __post_init__(self) -> None:
        if self.split not in ROLES_OF_TASKS:
            raise BadInput(f"split is {self.split!r}; tasks are drawn from one of {', '.join(ROLES_OF_TASKS)}")
        for name in ("way", "shot", "tasks", "query"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; a task list needs a {name} of at least 1")

    @property
    def seen_queries(self) -> int:
        """Seen queries per task: as many as unseen ones."""
        return 0 if self.split == "seen" else self.way * self.query


@dataclass(frozen=True)
class Tasks:
    """A task list, int32. `digest` names its content: two methods are comparable where it is equal."""

    spec: TaskSpec
    classes_TW: Tensor
    support_TWK: Tensor
    query_TWQ: Tensor
    seen_TQ: Tensor
    digest: str


def draw_tasks(dataset: Dataset, spec: TaskSpec, seed: int) -> Tasks:
    """Draw a task list; within a task no image occurs twice. Equal arguments give equal tasks on every machine."""
    drawing = _Drawing(dataset, spec)
    blocks = range(-(-spec.tasks // BLOCK))
    purpose = ("tasks", spec.split, spec.way, spec.shot, spec.query)
    drawn = [drawing.block(generator(seed, *purpose, block)) for block in blocks]
    return _tasks(spec, {name: torch.cat([part[name] for part in drawn])[: spec.tasks] for name in drawn[0]})


def ways_available(dataset: Dataset, split: str) -> int:
    """The most ways a task of `split` can have: its classes, or those of its richest domain.

    Calibration for N-way test tasks uses min(N, ways_available(dataset, "val")) ways.
    """
    classes = _images_by_class(dataset, split, ROLES_OF_TASKS[split][0]).counts_G.view(-1, _domains(dataset, split))
    return int((classes > 0).sum(dim=0).max())


def write_tasks(path: Path, tasks: Tasks) -> None:
    """Store a task list as safetensors; equal lists give equal bytes."""
    # One metadata entry, because safetensors does not keep the order of several.
    metadata = {"tasks": json.dumps({"spec": asdict(tasks.spec), "digest": tasks.digest})}
    with whole_file(path) as partial:
        save_file(_tensors(tasks), partial, metadata)


def read_tasks(path: Path) -> Tasks:
    """Read a stored task list back; raises BadInput where its content is not what was written."""
    try:
        with safe_open(path, "pt") as stored:
            facts = json.loads(stored.metadata()["tasks"])
            tasks = _tasks(TaskSpec(**facts["spec"]), {name: stored.get_tensor(name) for name in stored.keys()})
        expected = facts["digest"]
    except (OSError, SafetensorError, TypeError, KeyError, ValueError) as error:
        raise BadInput(f"{path}: not a stored task list ({error}); {_remedy(path)}") from error
    if tasks.digest != expected:
        message = f"{path}: content is {tasks.digest}, expected {expected}"
        raise BadInput(f"{message}; {_remedy(path)}")
    return tasks


def _remedy(path: Path) -> str:
    return f"draw the tasks again with `dvc repro -f -s episodes@{path.parents[1].name}`"


def draw_distinct(counts_R: Tensor, number: int, random: torch.Generator) -> Tensor:
    """Draw `number` distinct places below counts_R in every row, all ordered choices equally likely (R × number).

    Repeated places are drawn again, the later one of a pair, until none is left: the rule never looks at the place
    itself, so no place is favoured. Needs counts_R ≥ number.
    """
    below = counts_R.to(torch.float64)[:, None].numpy()
    places = (_uniform(len(counts_R) * number, random).reshape(len(counts_R), number) * below).astype(np.int64)
    rows = np.arange(len(places) if number else 0)
    while len(rows):
        # Sorting place and position as one number brings repetitions together and remembers where they were.
        keyed = np.sort(places[rows] * number + np.arange(number), axis=1)
        row, column = np.nonzero(keyed[:, 1:] // number == keyed[:, :-1] // number)
        again, position = rows[row], keyed[row, column + 1] % number
        places[again, position] = _uniform(len(again), random) * below[again, 0]
        rows = np.unique(again)
    return torch.from_numpy(places)


def _uniform(number: int, random: torch.Generator) -> np.ndarray:
    return torch.rand(number, dtype=torch.float64, generator=random).numpy()


@dataclass(frozen=True)
class _Groups:
    """Images by group, as a padded table: group g is images_GI[g, :counts_G[g]]."""

    images_GI: Tensor
    counts_G: Tensor

    def draw(self, group_R: Tensor, number: int, random: torch.Generator) -> Tensor:
        places = draw_distinct(self.counts_G[group_R], number, random)
        return self.images_GI[group_R[:, None], places]


def _grouped(images_N: Tensor, group_N: Tensor, groups: int) -> _Groups:
    counts_G = torch.bincount(group_N, minlength=groups)
    order_N = group_N.argsort(stable=True)
    place_N = torch.arange(len(images_N)) - (counts_G.cumsum(0) - counts_G)[group_N[order_N]]
    table_GI = torch.full((groups, int(counts_G.max())), -1, dtype=torch.int32)
    table_GI[group_N[order_N], place_N] = images_N[order_N].to(torch.int32)
    return _Groups(table_GI, counts_G)


def _domains(dataset: Dataset, split: str) -> int:
    """Number of domains that tasks of this split keep apart."""
    return 1 if split == "seen" or dataset.header.domain_rule == "none" else len(dataset.header.domains)


def _images_by_class(dataset: Dataset, split: str, role: str) -> _Groups:
    """Images of a role grouped by class and domain: group = class · domains + domain."""
    images_N, domains = dataset.roles[role], _domains(dataset, split)
    classes_C = dataset.labels_of(split)
    if not len(classes_C) or not len(images_N):
        raise BadInput(f"{dataset.header.name}: {role} has no images; tasks of {split} need some, check its splits")
    class_N = torch.searchsorted(classes_C, dataset.labels_N[images_N])
    return _grouped(images_N, class_N * domains + dataset.domains_N[images_N] % domains, len(classes_C) * domains)


def _seen_images(dataset: Dataset, split: str, role: str) -> _Groups:
    """Images of a seen role by domain; one group for every domain, all the same, where a class has only one domain."""
    images_N, domains = dataset.roles[role], _domains(dataset, split)
    if dataset.header.domain_rule == "per_image" and domains > 1:
        return _grouped(images_N, dataset.domains_N[images_N], domains)
    return _Groups(images_N.to(torch.int32).expand(domains, -1), torch.full((domains,), len(images_N)))


class _Drawing:
    """The tables that a draw looks into, checked once."""

    def __init__(self, dataset: Dataset, spec: TaskSpec) -> None:
        self.spec, self.labels_C = spec, dataset.labels_of(spec.split)
        self.all_domains = _domains(dataset, spec.split)
        support, query, seen = ROLES_OF_TASKS[spec.split]
        # Where support and queries share a role they are one draw, and so disjoint.
        needs = {support: spec.shot + spec.query} if support == query else {support: spec.shot, query: spec.query}
        self.own = [(_images_by_class(dataset, spec.split, role), need) for role, need in needs.items()]
        self.seen = _seen_images(dataset, spec.split, seen)
        self.has_GC = self.own[0][0].counts_G.view(-1, self.all_domains).T > 0
        self.domains = torch.nonzero(self.has_GC.sum(dim=1) >= spec.way).flatten()
        self._check(dataset, needs, seen)

    def _check(self, dataset: Dataset, needs: dict[str, int], seen: str) -> None:
        name, spec = dataset.header.name, self.spec
        if not len(self.domains):
            most, where = int(self.has_GC.sum(dim=1).max()), "" if self.all_domains == 1 else " in any one domain"
            message = f"{name}: {spec.split} has no more than {most} classes{where}, tasks ask for {spec.way} ways"
            raise BadInput(f"{message}; lower `way` to {most}")
        for (groups, need), role in zip(self.own, needs, strict=True):
            counts_CG = groups.counts_G.view(-1, self.all_domains)
            short_CG = self.has_GC.T & (counts_CG < need)
            for place, domain in torch.nonzero(short_CG)[:1].tolist():
                info = dataset.header.classes[int(self.labels_C[place])]
                where = "" if self.all_domains == 1 else f" in domain {dataset.header.domains[domain]}"
                message = f"{name}: class {info.name} has {int(counts_CG[place, domain])} {role} images{where}"
                raise BadInput(f"{message}, tasks need {need}; lower `shot` or `query`, or add images")
        fewest = int(self.seen.counts_G[self.domains].min())
        if fewest < spec.seen_queries:
            message = f"{name}: {seen} has {fewest} images for a task, {spec.way} ways need {spec.seen_queries}"
            raise BadInput(f"{message}; lower `way` or `query`, or add images")

    def block(self, random: torch.Generator) -> dict[str, Tensor]:
        """Draw BLOCK tasks."""
        spec = self.spec
        domain_T = self.domains[torch.randint(len(self.domains), (BLOCK,), generator=random)]
        keys_TC = torch.rand(BLOCK, len(self.labels_C), dtype=torch.float64, generator=random)
        class_TW = keys_TC.masked_fill(~self.has_GC[domain_T], torch.inf).argsort(dim=1)[:, : spec.way]
        group_R = (class_TW * self.all_domains + domain_T[:, None]).flatten()
        images_RI = torch.cat([groups.draw(group_R, need, random) for groups, need in self.own], dim=1)
        support_RK, query_RQ = images_RI.split([spec.shot, spec.query], dim=1)
        return {
            "classes": self.labels_C[class_TW].to(torch.int32),
            "support": support_RK.reshape(BLOCK, spec.way, spec.shot),
            "query": query_RQ.reshape(BLOCK, spec.way, spec.query),
            "seen": self.seen.draw(domain_T, spec.seen_queries, random),
        }


def _tasks(spec: TaskSpec, tensors: dict[str, Tensor]) -> Tasks:
    digest = hashlib.sha256(json.dumps(asdict(spec)).encode())
    for name in ("classes", "support", "query", "seen"):
        digest.update(tensors[name].contiguous().numpy().tobytes())
    return Tasks(spec, tensors["classes"], tensors["support"], tensors["query"], tensors["seen"], digest.hexdigest())


def _tensors(tasks: Tasks) -> dict[str, Tensor]:
    named = {"classes": tasks.classes_TW, "support": tasks.support_TWK, "query": tasks.query_TWQ, "seen": tasks.seen_TQ}
    return {name: tensor.contiguous() for name, tensor in named.items()}


def draw_exemplars(dataset: Dataset, number: int, seed: int) -> Tensor:
    """Rows of `number` distinct training images of every seen class (S × number), the ones that a method remembers.

    Fewer where a class has fewer, then of every class; a smaller number gives the beginning of a larger one.
    """
    images = _images_by_class(dataset, "seen", "train")
    fewest = int(images.counts_G.min())
    random = generator(seed, "exemplars")
    drawn = images.draw(torch.arange(dataset.seen_classes), fewest, random).long()
    return drawn[:, : min(number, fewest)]
