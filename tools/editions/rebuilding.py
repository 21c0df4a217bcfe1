"""Render an edition again from its committed records: no training, no dataset, nothing but its folder and the code."""

import shutil
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from safetensors.numpy import load_file

from repro import paths
from repro.editions.details import read_details
from repro.editions.edition import SAMPLES, Edition
from repro.editions.restoring import restore_records
from repro.report.facts import DatasetFacts
from repro.report.paper import Rendered
from stages.paper import render
from stages.settings.grid import read_grid_file
from stages.settings.kinds import PaperSettings
from stages.settings.params import read_params
from stages.settings.resolving import Resolver
from stages.settings.scales import GENERATED

# What rendering writes below paper/, by the name that an edition keeps it under.
RENDERED = {file.relative_to(paths.PAPER): file for file in GENERATED if file.is_relative_to(paths.PAPER)}


@contextmanager
def fresh_paper(edition: Edition, root: Path) -> Iterator[tuple[Path, Rendered]]:
    """Give a folder in which the edition's paper was rendered with the code below `root`, and what came of it."""
    settings = paper_settings(edition, root)
    with TemporaryDirectory(prefix="edition-") as name:
        folder, absolute = Path(name), Edition(edition.folder.absolute())
        restore_records(absolute.folder, folder / paths.ALL_RESULTS, absolute.origins())
        with chdir(folder):
            facts, same_classes = dataset_facts(absolute), absolute.about.same_classes
            details = read_details(absolute.folder)
            result = render(settings, facts, absolute.contents(), same_classes, root / paths.PAPER, details)
        for copied in edition.about.copied:
            shutil.copy(absolute.folder / copied, folder / paths.PAPER / copied)
        yield folder / paths.PAPER, result


def paper_settings(edition: Edition, root: Path) -> PaperSettings:
    """What its paper is rendered with."""
    return resolver(edition, root).paper()


def resolver(edition: Edition, root: Path) -> Resolver:
    """What every stage would be run with, with its parameters and the code below `root`."""
    return Resolver(read_params(edition.folder / "params.yaml"), read_grid_file(edition.folder / "grid.yaml"), root)


def dataset_facts(edition: Edition) -> dict[str, DatasetFacts]:
    """What captions and F5 show of its datasets."""
    stored = load_file(edition.folder / SAMPLES)
    samples: dict[str, dict[str, object]] = {}
    for key, images_NHWC in sorted(stored.items()):
        dataset, _, domain = key.split("/", 2)
        samples.setdefault(dataset, {})[domain] = images_NHWC
    return {
        name: DatasetFacts(name, **vars(dataset), samples=samples.get(name, {}))  # type: ignore[arg-type]
        for name, dataset in edition.about.datasets.items()
    }


def differing(kept: Path, found: Path) -> list[str]:
    """The rendered files that are not byte for byte those that were kept, by name."""
    wanted, present = rendered_files(kept), rendered_files(found)
    return sorted(name for name in wanted | present if _bytes(kept / name) != _bytes(found / name))


def rendered_files(folder: Path) -> set[str]:
    """The rendered files below a folder, by name."""
    listed = [folder / name for name in RENDERED]
    files = [file for each in listed for file in ([each] if each.is_file() else sorted(each.rglob("*")))]
    return {file.relative_to(folder).as_posix() for file in files if file.is_file()}


def _bytes(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None
