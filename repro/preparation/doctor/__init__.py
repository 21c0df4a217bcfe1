"""Is this raw dataset fit to be packed? Layout, counts, tasks, unreadable files, contents in two roles, variant."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from repro.data.dataset import ROLES, SPLIT_OF_ROLE, SPLITS, Dataset
from repro.data.episodes import TaskSpec, draw_tasks
from repro.data.pixels import PixelsInMemory
from repro.errors import BadInput
from repro.preparation.collection import Collection
from repro.preparation.doctor.findings import Finding, Report
from repro.preparation.doctor.pictures import compare, look_at_all
from repro.preparation.doctor.variants import shared_between_roles, variant
from repro.preparation.sources import collect

__all__ = ["TASK_IMAGES", "Finding", "Report", "examine"]
TASK_IMAGES = 20  # of an unseen class in a 5-shot task: 5 support and 15 query images
Counts = dict[str, dict[str, int]]


def examine(
    source: str,
    seed: int,
    options: Mapping[str, Any],
    *,
    decode: bool = True,
    task_images: int = TASK_IMAGES,
    tasks: Callable[[Dataset], Iterable[TaskSpec]] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Examine a raw dataset as `collect` would list it; `decode` reads and decodes every image.

    `task_images` is what an unseen class must have for one task. `tasks` gives the task lists that will be drawn from
    the dataset, told its labels without its pixels; they then say what a class must have. `progress` hears (images
    done, images in all).
    """
    try:
        collection = collect(source, source, seed, options)
    except BadInput as error:
        return Report([Finding("layout", str(error), "the layout and the counts of this source", "fail")], {})
    findings = [Finding("layout", f"{len(collection.pictures):,} images listed", "readable folders and lists", "pass")]
    findings += _classes(collection)
    data = _without_pixels(collection)
    specs = list(tasks(data)) if tasks else []
    counts = _counts(collection)
    findings += _roles(collection, counts, max((spec.shot + spec.query for spec in specs), default=task_images))
    findings += _drawable(data, specs)
    if decode:
        looks = look_at_all(collection, progress)
        findings += looks.findings(collection)
        contents = looks.contents
    else:
        findings.append(Finding("files", "not decoded (fast)", "every image decodes", "warn"))
        contents = compare(collection)
    findings += shared_between_roles(collection, contents)
    findings += variant(collection.header.provenance)
    return Report(findings, counts)


def _classes(collection: Collection) -> Iterator[Finding]:
    found = Counter(info.split for info in collection.header.classes)
    seen = ", ".join(f"{found[split]} {split}" for split in SPLITS)
    yield Finding("classes", seen, "no class in two splits", "pass")  # else collect would have raised
    if collection.header.domain_rule != "none":
        yield Finding("domains", ", ".join(collection.header.domains), "at least one", "pass")


def _counts(collection: Collection) -> Counts:
    counts: Counts = {info.name: {} for info in collection.header.classes}
    for (class_name, role), number in Counter((each.class_name, each.role) for each in collection.pictures).items():
        counts[class_name][role] = number
    return counts


def _roles(collection: Collection, counts: Counts, task_images: int) -> Iterator[Finding]:
    """One row per role: images in all, and the fewest and most of a class."""
    for role in ROLES:
        split = SPLIT_OF_ROLE[role]
        held = {info.name: counts[info.name].get(role, 0) for info in collection.header.classes if info.split == split}
        least = 1 if split == "seen" else task_images
        poorest = min(held, key=lambda name: held[name])
        spread = f"{min(held.values()):,}" + (f" to {max(held.values()):,}" if len(set(held.values())) > 1 else "")
        enough = held[poorest] >= least
        seen = f"{sum(held.values()):,} images, {spread} per class" + ("" if enough else f" (fewest: {poorest})")
        yield Finding(f"role {role}", seen, f"at least {least} per class", "pass" if enough else "fail")


def _drawable(data: Dataset, specs: list[TaskSpec]) -> Iterator[Finding]:
    """Whether a task of every list can be drawn: a row per list that cannot, one row where all can."""
    expected = "tasks as the episodes entry of params.yaml asks"
    problems: dict[str, Finding] = {}
    for spec in specs:
        try:
            draw_tasks(data, replace(spec, tasks=1), seed=0)
        except BadInput as error:
            check = f"tasks {spec.split} {spec.way}-way {spec.shot}-shot"
            problems[check] = Finding(check, str(error), expected, "fail")
    yield from problems.values()
    if specs and not problems:
        ways, shots = ({getattr(spec, name) for spec in specs} for name in ("way", "shot"))
        seen = f"all lists can be drawn ({min(ways)} to {max(ways)} ways, {min(shots)} to {max(shots)} shots)"
        yield Finding("tasks", seen, expected, "pass")


def _without_pixels(collection: Collection) -> Dataset:
    """The dataset that packing would give, as far as tasks look at it."""
    manifest = collection.manifest()
    roles = manifest["role"].to_numpy()
    return Dataset(
        header=collection.header,
        pixels=PixelsInMemory(np.empty((0, 1, 1, 3), np.uint8)),
        labels_N=torch.tensor(manifest["label"].tolist()),
        domains_N=torch.tensor(manifest["domain"].tolist()),
        roles={role: torch.from_numpy(np.flatnonzero(roles == role)) for role in ROLES},
    )
