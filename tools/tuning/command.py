"""What tools/tune does once its command line is read."""

import subprocess
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from repro import paths
from repro.results.tuning import Tuning, read_tunings, write_tunings
from stages.settings.grid import read_grid
from stages.settings.params import read_params
from stages.settings.planned import STANDARD
from stages.settings.resolving import Resolver
from tools.tuning.choices import Choices, read_choices
from tools.tuning.declaring import as_markdown, as_yaml, lines_for_params, put_into
from tools.tuning.formats import roles, table
from tools.tuning.search import Search
from tools.tuning.trials import Trials


def tune(given: Namespace) -> None:
    """Do what was asked for."""
    choices = read_choices(_benchmark())
    if given.dataset is None:
        given.dataset = choices.dataset
    if given.shot is None:
        given.shot = choices.shot
    if given.apply:
        _apply(choices, Path(given.into))
    elif given.all:
        _everything(choices, given)
    elif given.compare_format:
        _prepare(choices.dataset, roles(choices))
        for line in table(_resolver(), choices, Trials(given.jobs), given.compare_format):
            print(line, flush=True)
    else:
        lines = _tuned(choices, given)
        print(f"`tools/tune --apply` puts this into params.yaml:\n{as_yaml(lines)}")


def _everything(choices: Choices, given: Namespace) -> None:
    """Pre-training of every dataset; then, from these, settings and all budgets that the grid needs."""
    for dataset in read_params(paths.PARAMS).datasets:
        _tuned(choices, Namespace(**{**vars(given), "dataset": dataset, "pretraining": True}))
        _apply(choices, paths.PARAMS)
    places = {(line.dataset, line.shot) for line in read_grid().trained.values()}
    first = (choices.dataset, choices.shot)
    for dataset, shot in (first, *sorted(places - {first})):
        _tuned(choices, Namespace(**{**vars(given), "dataset": dataset, "shot": shot, "pretraining": False}))
    _apply(choices, paths.PARAMS)


def _tuned(choices: Choices, given: Namespace) -> dict[str, Any]:
    """Train and choose, and write what was chosen; gives the entries of params.yaml that follow."""
    name, before = _benchmark(), read_tunings(paths.TUNED)
    tuning = _search(choices, before.of(name), given)
    tunings = before.with_tuning(name, tuning)
    write_tunings(paths.TUNED, tunings)
    paths.TUNED.with_suffix(".md").write_text(as_markdown(tunings), encoding="utf-8")
    print(f"{paths.TUNED} is written", flush=True)
    return lines_for_params(tuning, choices)


def _search(choices: Choices, before: Tuning, given: Namespace) -> Tuning:
    """Make what the trainings begin with, then train and choose."""
    search = Search(choices, _resolver(), Trials(given.jobs).outcomes)
    before = search.begin(before)
    if given.pretraining:
        search.require(given.dataset)
        _prepare(given.dataset, [])
        return search.pretrained(before, given.dataset)
    names = search.names(given.dataset, given.shot, given.methods)
    _prepare(given.dataset, search.roles(names))
    return search.tuned(before, given.dataset, given.shot, names)


def _prepare(dataset: str, needed: Sequence[str]) -> None:
    """Run the stages that come before training, where they are stale; pre-training for the needed roles."""
    pretrainings = ["pretrain" if role == STANDARD else f"pretrain_{role}" for role in needed]
    stages = [f"{stage}@{dataset}" for stage in ("splits", "episodes", *pretrainings)]
    done = subprocess.run(["dvc", "repro", *stages], check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


def _apply(choices: Choices, file: Path) -> None:
    """Put what was chosen into params.yaml or the file of a scale."""
    put_into(file, lines_for_params(read_tunings(paths.TUNED).of(_benchmark()), choices))
    print(f"{file} has what {paths.TUNED} says", flush=True)


def _resolver() -> Resolver:
    return Resolver(read_params(paths.PARAMS), read_grid())


def _benchmark() -> str:
    """The name of the one that params.yaml runs."""
    return read_params(paths.PARAMS).benchmark.name
