"""Two sides by name, and what tools/compare says of them: a table, JSON and HTML."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from math import isnan
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from repro import paths
from repro.data.summary import summarise_dataset
from repro.editions.differences import Difference, Side, differences
from repro.editions.edition import Edition, kept_edition, names
from repro.editions.restoring import restore_records
from repro.editions.sides import RecordsSide, published_side, table_side
from repro.errors import BadInput
from repro.files import whole_file
from repro.report.templates import write_page
from repro.results.contents import StoredContents
from repro.results.store import Cell, Results
from stages.paper import share_classes
from stages.settings.grid import Grid, read_grid, read_grid_file
from stages.settings.params import read_params
from stages.tracking.names import printable
from tools.editions.comparison_page import VERDICTS, render
from tools.editions.keeping import cell_of

WORKSPACE, PUBLISHED = "workspace", "published"
TABLES = (".csv", ".parquet")


@contextmanager
def sides(first: str, second: str) -> Iterator[tuple[Side, Side]]:
    """Both sides; raises BadInput where a name stands for no side, or the paper is compared with itself."""
    if first == second == PUBLISHED:
        raise BadInput("both sides are published, expected an edition, the workspace or a file beside it")
    with ExitStack() as opened:
        found: dict[str, tuple[Side, dict[str, int]]] = {}
        for name in (first, second):
            if name != PUBLISHED and name not in found:
                found[name] = opened.enter_context(_side(name))
        unseen = next(ways for _, ways in found.values())
        printed = published_side(paths.PAPER / "published.yaml", unseen)
        ours, theirs = (printed if name == PUBLISHED else found[name][0] for name in (first, second))
        yield ours, theirs


@contextmanager
def _side(name: str) -> Iterator[tuple[Side, dict[str, int]]]:
    """A side, and how many unseen classes its datasets have."""
    if name == WORKSPACE:
        side = workspace()
        yield side, dict(side.results.unseen_classes)
    elif Path(name).suffix in TABLES:
        unseen = {} if not paths.dataset("").exists() else dict(workspace().results.unseen_classes)
        foreign = table_side(Path(name), _cells(read_grid()))
        foreign.name = printable(foreign.name)  # for all that names it
        yield foreign, unseen
    elif name in names():
        edition = kept_edition(name)
        with records_of(edition) as side:
            yield side, dict(side.results.unseen_classes)
    else:
        known = ", ".join((WORKSPACE, PUBLISHED, *names()))
        raise BadInput(f"side is {name!r}, expected {known}, or a .csv or .parquet file")


def workspace() -> RecordsSide:
    """The records of the working tree."""
    params = read_params(paths.PARAMS)
    folders = {name: paths.dataset(name, params.seeds[0]) for name in params.datasets}
    unseen = {name: summarise_dataset(folder).unseen for name, folder in folders.items() if folder.is_dir()}
    contents = StoredContents(*(paths.episodes(name, "test") for name in unseen))
    drawn = tuple(seed for seed in params.seeds if all(paths.dataset(name, seed).is_dir() for name in unseen))
    same_classes = share_classes(list(unseen), drawn)
    return RecordsSide(WORKSPACE, Results(paths.ALL_RESULTS, unseen, contents, same_classes), _cells(read_grid()))


@contextmanager
def records_of(edition: Edition) -> Iterator[RecordsSide]:
    """The records of an edition."""
    unseen = {name: dataset.unseen for name, dataset in edition.about.datasets.items()}
    with TemporaryDirectory(prefix="edition-") as folder:
        restore_records(edition.folder, Path(folder), edition.origins())
        results = Results(Path(folder), unseen, edition.contents(), edition.about.same_classes)
        yield RecordsSide(edition.name, results, _cells(read_grid_file(edition.folder / "grid.yaml")))


def _cells(grid: Grid) -> list[Cell]:
    return [cell_of(*line) for line in grid.lines().items()]


def compare(first: str, second: str) -> list[Difference]:
    """Every number that one of the sides has, compared; raises BadInput where one of them has none."""
    with sides(first, second) as (ours, theirs):
        found = list(differences(ours, theirs))
    for name, means in ((first, [each.first for each in found]), (second, [each.second for each in found])):
        if all(map(isnan, means)):
            message = f"{name} has no number to compare, expected some"
            raise BadInput(f"{message}; run `tools/repro` for records of your own, or name an edition")
    return found


def as_frame(found: Sequence[Difference]) -> pd.DataFrame:
    """A row for each number, as tables show it."""
    rows = []
    for each in found:
        plain = {name: value for name, value in asdict(each).items() if name != "reading"}
        reading = each.reading
        place = {"cell": reading.cell.name, "protocol": reading.protocol, "way": reading.way}
        rows.append(place | {"measure": reading.measure} | plain)
    return pd.DataFrame(rows)


def summary(found: Sequence[Difference]) -> str:
    """How many numbers agree, in a sentence."""
    counts = Counter(each.verdict for each in found)
    return f"Of {len(found)} numbers " + ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS) + "."


def write_json(file: Path, found: Sequence[Difference]) -> None:
    """All of it for programs; what is not known is null."""
    rows = [
        {name: None if isinstance(value, float) and isnan(value) else value for name, value in row.items()}
        for row in as_frame(found).to_dict("records")
    ]
    with whole_file(file) as partial:
        partial.write_text(
            json.dumps({"summary": summary(found), "numbers": rows}, indent=1, ensure_ascii=False) + "\n",
            encoding="utf-8",
        )


def write_html(file: Path, found: Sequence[Difference], first: str, second: str) -> None:
    """All of it as one page."""
    write_page(file, render(found, first, second, summary(found)))
