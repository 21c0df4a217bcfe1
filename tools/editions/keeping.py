"""Keep what a finished run rendered, and its records in their smallest exact form, as an edition."""

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from repro import paths
from repro.data.episodes import read_tasks
from repro.data.summary import DatasetSummary, summarise_dataset
from repro.editions.details import write_details
from repro.editions.edition import ABOUT, EDITIONS, LIBRARIES, NAME, SAMPLES, About, Dataset, Edition
from repro.editions.records import Keeping
from repro.editions.tasks import DrawnList, layout_of
from repro.errors import BadInput
from repro.files import seal, whole_folder
from repro.report.details import view_details
from repro.report.facts import DatasetFacts, Methods
from repro.report.needs import read_by
from repro.report.rows import with_rows
from repro.results.contents import StoredContents
from repro.results.paper_claims import paper_claims
from repro.results.store import Cell, Reading, Results
from stages.paper import cards, described, share_classes
from stages.settings.grid import Line, read_grid, read_grid_file
from stages.settings.kinds import PaperSettings
from stages.settings.params import read_params
from stages.settings.resolving import Resolver
from tools.editions import dictionary
from tools.editions.rebuilding import RENDERED, differing, fresh_paper

MAY_TAKE_MORE = ("report.html",)  # behind a number it shows values over tasks, also of measures kept as means
CHOSEN = {Path("params.yaml"): paths.PARAMS, Path("grid.yaml"): paths.GRID, Path("dvc.lock"): paths.LOCK}
CHOSEN |= {Path("evaluate.lock"): paths.EVALUATIONS_LOCK}
CHOSEN |= {Path("metrics.json"): paths.SUMMARY / "metrics.json"}  # DVC leaves it to git


def keep(name: str) -> Edition:
    """Write paper/editions/<name> from the workspace, after trying that its records give what was rendered.

    Raises BadInput where the name will not do, nothing was rendered, or the rendered paper is of other records.
    """
    require_name(name)
    for file in (*RENDERED.values(), *CHOSEN.values()):
        if not file.exists():
            raise BadInput(f"there is no {file}, expected a finished run; run `tools/repro` first")
    settings = Resolver(read_params(paths.PARAMS), read_grid()).paper()
    with whole_folder(EDITIONS / name) as folder:
        for kept, file in {**RENDERED, **CHOSEN}.items():
            (shutil.copytree if file.is_dir() else shutil.copy)(file, folder / kept)
        summaries = {each: summarise_dataset(paths.dataset(each, settings.seeds[0])) for each in described(settings)}
        about = _about(name, settings, summaries)
        _write_samples(folder / SAMPLES, summaries)
        contents = StoredContents(*(paths.episodes(each, "test") for each in summaries))
        unseen = {each: facts.unseen for each, facts in summaries.items()}
        results = Results(paths.ALL_RESULTS, unseen, contents, about.same_classes)
        keep_records(folder, settings, about, results)
        datasets = {each: DatasetFacts(each, **vars(facts)) for each, facts in summaries.items()}
        known = Methods(cards(settings), settings.rows)
        write_details(folder, view_details(results, datasets, known, settings.way))
        write_about(folder, about)
        if copied := _require_rebuilt(folder):
            write_about(folder, replace(about, copied=tuple(copied)))
    return Edition(EDITIONS / name)


def require_name(name: str) -> None:
    """Raise BadInput unless an edition may be called so."""
    if not NAME.fullmatch(name):
        raise BadInput(f"name is {name!r:.60}, expected small letters, digits, - and _, such as mini32")


def cell_of(name: str, line: Line) -> Cell:
    """The cell that a line of the grid stands for."""
    main = Cell(line.dataset, line.method, line.shot)
    return Cell(line.dataset, line.method, line.shot, name.removeprefix(main.name).removeprefix("-"))


def write_about(folder: Path, about: About) -> None:
    """Write it, and seal the folder."""
    text = json.dumps(asdict(about), indent=1, sort_keys=True) + "\n"
    (folder / ABOUT).write_text(text, encoding="utf-8")
    seal(folder)


def _about(name: str, settings: PaperSettings, summaries: dict[str, DatasetSummary]) -> About:
    folders = {f"{each}/{seed}": paths.dataset(each, seed) for each in summaries for seed in settings.seeds}
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    lists = {}
    for each in summaries:
        for seed in settings.seeds:
            for file in sorted(paths.episodes(each, "test", seed).glob("*.safetensors")):
                tasks = read_tasks(file)
                lists[tasks.digest] = DrawnList(each, seed, tasks.spec)
    return About(
        name=name,
        benchmark=f"{settings.benchmark.name} benchmark, scale {settings.benchmark.scale}",
        remark=settings.benchmark.remark,
        seeds=settings.seeds,
        commit=commit,
        libraries={library: version(library) for library in LIBRARIES},
        copied=(),
        same_classes=share_classes(list(summaries), settings.seeds),
        datasets={
            each: Dataset(seen=facts.seen, val=facts.val, unseen=facts.unseen, images=dict(facts.images))
            for each, facts in summaries.items()
        },
        layouts={key: layout_of(folder) for key, folder in folders.items()},
        lists=lists,
    )


def _write_samples(file: Path, summaries: dict[str, DatasetSummary]) -> None:
    """The images that F5 shows, domains in their order."""
    samples = {
        f"{name}/{place:03d}/{domain}": np.ascontiguousarray(images_NHWC)
        for name, facts in summaries.items()
        for place, (domain, images_NHWC) in enumerate(facts.samples.items())
    }
    file.write_bytes(save(samples))  # safetensors itself would leave the file to its owner alone


def keep_records(folder: Path, settings: PaperSettings, about: About, results: Results) -> None:
    """Write the records of all cells of the kept grid."""
    cells = [cell_of(*line) for line in read_grid_file(folder / "grid.yaml").lines().items()]
    keeping = Keeping(results, _read_by_task(results, settings, cells), lambda digest: _queries(about, digest))
    for cell in cells:
        keeping.add(cell)
    keeping.write(folder)


def _read_by_task(results: Results, settings: PaperSettings, cells: list[Cell]) -> Callable[[Reading], bool]:
    """Whether a table, figure, claim or the findings read a measure task by task."""
    layout, claims = with_rows(settings.rows, results.has), paper_claims(settings.rows)
    read = [reading for _, reading in read_by(*layout, claims, results.has)]
    wanted = {_place(results, each) for each in (*read, *dictionary.readings(cells))}
    # A protocol that has one number of ways is read with "any".
    return lambda each: not wanted.isdisjoint({_place(results, each), _place(results, replace(each, way="any"))})


def _place(results: Results, reading: Reading) -> tuple[str, str, int | None, str]:
    return reading.cell.name, reading.protocol, results.ways(reading.cell.dataset, reading.way), reading.measure


def _queries(about: About, digest: str) -> int:
    if digest not in about.lists:
        message = f"a record was measured on task list {digest or 'nothing'}, which is not in episodes/"
        raise BadInput(f"{message}; run `tools/doctor --results` to see what is stale")
    spec = about.lists[digest].spec
    return spec.way * spec.query


def _require_rebuilt(folder: Path) -> list[str]:
    """Raise BadInput unless the kept records render what was rendered; gives files that take more than these."""
    with fresh_paper(Edition(folder), Path.cwd()) as (found, _):
        others = differing(folder, found)
    if wrong := [name for name in others if name not in MAY_TAKE_MORE]:
        message = f"the records give another {', '.join(wrong[:3])} than the one in {paths.PAPER}"
        raise BadInput(f"{message}; run `dvc repro paper`, then keep the edition again")
    return others
