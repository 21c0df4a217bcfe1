"""Editions of one run's parameters, each with seeds of its own, as one: replicates that were run apart.

What the parts keep task by task is read as if one workspace had run it all. Of other measures they keep means, which
say with three seeds and more what another replicate would give; on given data, whose seeds share classes and images,
they say it of another training alone.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from repro import paths
from repro.editions.details import joined_details, read_details, write_details
from repro.editions.edition import EDITIONS, SAMPLES, About, Edition
from repro.editions.estimates import joined, read_estimates
from repro.editions.restoring import restore_records
from repro.editions.tasks import RedrawnContents
from repro.errors import BadInput
from repro.files import whole_folder
from repro.results.intervals import Mean
from repro.results.kept_estimates import ESTIMATES, as_plain, kept_estimate
from repro.results.records import MEASURES, RECORDS, read_records, write_json
from repro.results.store import Results
from stages.paper import render
from stages.settings import scales
from stages.settings.params import read_params
from tools.editions.keeping import keep_records, require_name, write_about
from tools.editions.rebuilding import RENDERED, dataset_facts, resolver

PARAMS, GRID = "params.yaml", "grid.yaml"
FIXED_SPLITS = ("miniimagenet", "tieredimagenet", "tieredimagenet_packed")  # sources whose classes no seed draws
OF_FIRST = (PARAMS, GRID, "metrics.json", SAMPLES)  # datasets look as the first seed drew them


def join(name: str, parts: Sequence[Edition]) -> Edition:
    """Write paper/editions/<name>; raises BadInput where the parts are no replicates of one run."""
    require_name(name)
    parts = sorted(parts, key=lambda part: part.about.seeds)
    for difference in _differences(parts):
        raise BadInput(f"{difference}; only replicates of one run can be joined")
    about = _about(name, parts)
    root, contents = Path.cwd(), RedrawnContents(about.layouts, about.lists)
    with TemporaryDirectory(prefix="join-") as work, whole_folder(EDITIONS / name) as folder:
        for first in OF_FIRST:
            shutil.copy(parts[0].folder / first, folder / first)
        overlay = {"seeds": list(about.seeds)}
        text = (folder / PARAMS).read_text(encoding="utf-8")
        (folder / PARAMS).write_text(scales.overlaid(text, overlay), encoding="utf-8")
        for part in parts:
            for lock in part.folder.glob("*.lock"):
                seeds = "-".join(map(str, part.about.seeds))
                shutil.copy(lock, folder / (lock.name if part.about.joined else f"{lock.stem}-{seeds}.lock"))
        write_about(folder, about)
        records = Path(work) / paths.ALL_RESULTS
        _restore(parts, records, about.same_classes)
        settings = resolver(Edition(folder), root).paper()
        facts = dataset_facts(Edition(folder))
        details = joined_details(read_details(part.folder) for part in parts)
        write_details(folder, details)
        with chdir(work):
            render(settings, facts, contents, about.same_classes, root / paths.PAPER, details)
        for kept, file in RENDERED.items():
            made = Path(work) / file
            (shutil.copytree if made.is_dir() else shutil.copy)(made, folder / kept)
        unseen = {each: dataset.unseen for each, dataset in about.datasets.items()}
        keep_records(folder, settings, about, Results(records, unseen, contents, about.same_classes))
        write_about(folder, about)
    return Edition(EDITIONS / name)


def _differences(parts: Sequence[Edition]) -> Iterator[str]:
    """What keeps parts from being replicates of one run."""
    first, *others = parts
    if not others:
        yield f"{first.name} is the only edition named, expected two or more"
    taken: dict[int, str] = {}
    for part in parts:
        for seed in part.about.seeds:
            if seed in taken:
                yield f"{part.name} and {taken[seed]} both have seed {seed}"
            taken[seed] = part.name
    for other in others:
        for file, left_out in ((PARAMS, {"seeds", "machine"}), (GRID, set())):
            chosen = [scales.read_chosen(each.folder / file) for each in (first, other)]
            mine, theirs = ({key: each[key] for key in each.keys() - left_out} for each in chosen)
            for change in scales.changes(mine, theirs):
                yield f"{other.name} was run with another {file} than {first.name} ({change})"
        ran, ran_there = _code(first), _code(other)
        for step in sorted(ran.keys() | ran_there.keys()):
            if ran.get(step) != ran_there.get(step):
                yield f"{other.name} was run with other code of {step} than {first.name}"


def _code(part: Edition) -> dict[str, str]:
    """The code behind every step."""
    return {f"{step['stage']} {step['cell']}": step["code"] for step in part.steps().values()}


def _about(name: str, parts: Sequence[Edition]) -> About:
    abouts = [part.about for part in parts]
    first = abouts[0]
    datasets = read_params(parts[0].folder / PARAMS).datasets.values()
    return About(
        name=name,
        benchmark=first.benchmark,
        remark=first.remark,
        seeds=tuple(sorted(seed for about in abouts for seed in about.seeds)),
        commit=first.commit,
        libraries=first.libraries,
        copied=(),
        same_classes=any(dataset.source in FIXED_SPLITS for dataset in datasets),
        datasets=first.datasets,
        layouts={key: layout for about in abouts for key, layout in about.layouts.items()},
        lists={digest: drawn for about in abouts for digest, drawn in about.lists.items()},
        joined={
            seeds: commit
            for about in abouts
            for seeds, commit in (about.joined or {", ".join(map(str, about.seeds)): about.commit}).items()
        },
    )


def _restore(parts: Sequence[Edition], records: Path, same_classes: bool) -> None:
    """The records of all parts in one folder, and of the measures that they keep no values of, means over all seeds."""
    kept: dict[str, dict[tuple[str, str], list[Mean]]] = {}
    for part in parts:
        restore_records(part.folder, records, part.origins())
        for file in records.glob(f"*/{ESTIMATES}"):
            cell = kept.setdefault(file.parent.name, {})
            for group, measures in read_estimates(file.parent).items():
                for measure in measures:
                    if mean := kept_estimate(file.parent, group, measure):
                        cell.setdefault((group, measure), []).append(mean)
            file.unlink()
    for name, means in kept.items():
        _require_alike(records / name)
        found: dict[str, dict[str, Any]] = {}
        for (group, measure), of_parts in means.items():
            if len(of_parts) == len(parts):
                found.setdefault(group, {})[measure] = as_plain(joined(of_parts, same_classes))
        write_json(records / name / ESTIMATES, found)


def _require_alike(cell: Path) -> None:
    """Raise BadInput unless all seeds of a cell keep the same measures task by task."""
    kept: dict[tuple[str, int], tuple[str, set[str]]] = {}
    for file in sorted(cell.glob(f"*/{RECORDS}")):
        records = read_records(file)
        for group in records.groups():
            there = {measure for measure in MEASURES if not np.isnan(records.values(*group, measure)).any()}
            seed, others = kept.setdefault(group, (file.parent.name, there))
            if there != others:
                measures = ", ".join(sorted(there ^ others))
                message = f"{cell.name}: seeds {seed} and {file.parent.name} do not both keep {measures} task by task"
                raise BadInput(f"{message}; keep all parts at one commit")
