"""Would the working tree give an edition, and, where it has run, did it? Settings, code, data, and results by cell."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from repro import paths
from repro.editions.differences import Difference, differences
from repro.editions.edition import Edition, kept_edition
from repro.editions.sides import RecordsSide
from repro.results.records import RECORDS, record_digest
from repro.results.store import Cell
from stages.tracking.files import read_facts
from tools.editions.command import changes
from tools.editions.comparing import VERDICTS, records_of, workspace
from tools.editions.rebuilding import resolver

MOST_LINES = 10


def check_edition(root: Path, name: str) -> int:
    """Print what stands in the way and what came out; exit code 0 where nothing differs, else 1."""
    edition = kept_edition(name)
    findings = [*_settings(edition), *_code(edition, root), *_data(edition)]
    results = list(_results(edition))
    for line in (*findings, *(line for line, _ in results)):
        print(line)
    wrong = [line for line in findings if ": differ" in line] + [line for line, fine in results if not fine]
    would = "would not" if any(": differ" in line for line in findings) else "would"
    ran = "nothing of it has been run here" if not results else f"{len(results)} cells were compared"
    print(f"{name}: the working tree {would} reproduce it; {ran}")
    return int(bool(wrong))


def _settings(edition: Edition) -> Iterator[str]:
    found = changes(edition)
    yield f"settings: differ in {len(found)} place{'s' * (len(found) > 1)}" if found else "settings: equal"
    yield from (f"  {line}" for line in found[:MOST_LINES])


def _code(edition: Edition, root: Path) -> Iterator[str]:
    """Stages whose code has changed since the edition was run."""
    planned = {(stage, name): settings.code for stage, name, settings in resolver(edition, root).all()}
    changed: dict[str, list[str]] = {}
    for step in edition.steps().values():
        stage, cell = step["stage"], step["cell"]
        name = cell.rsplit("-", 1)[0] if stage == "episodes" else cell  # its lists have a folder per split
        if planned.get((stage, name)) != step["code"]:
            changed.setdefault(stage, []).append(cell)
    number = sum(map(len, changed.values()))
    yield f"code: differs in {number} of {len(edition.steps())} steps" if number else "code: equal"
    yield from (f"  {stage}: {', '.join(sorted(set(cells))[:MOST_LINES])}" for stage, cells in changed.items())


def _data(edition: Edition) -> Iterator[str]:
    """Every dataset: equal, different, or what it would be made from; seeds of which the same holds in one line."""
    sources = resolver(edition, Path.cwd()).params.datasets
    seeds: dict[tuple[str, str], list[int]] = {}
    for step in edition.steps().values():
        if step["stage"] == "splits":
            name, seed = step["cell"], step["seed"]
            seeds.setdefault((name, _dataset(name, seed, step["output"], sources[name].options)), []).append(seed)
    for (name, found), listed in sorted(seeds.items()):
        yield f"data {name}, seed{'s' * (len(listed) > 1)} {', '.join(map(str, sorted(listed)))}: {found}"


def _dataset(name: str, seed: int, kept: str, options: Mapping[str, Any]) -> str:
    folder = paths.dataset(name, seed)
    if (folder / paths.ORIGIN).is_file():
        return "equal" if left_by(folder) == kept else "differs: other images or another order"
    gone = [path for path in _paths(options) if not Path(path).exists()]
    return f"differs: its raw data is not at {gone[0]}" if gone else f"to be made by `dvc repro splits@{name}`"


def left_by(folder: Path) -> str:
    """What a stage says it left."""
    return str(read_facts(folder / paths.ORIGIN).get("output"))


def _paths(options: Mapping[str, Any]) -> list[str]:
    values = [each for value in options.values() for each in (value if isinstance(value, list) else [value])]
    return [value for value in values if isinstance(value, str) and "/" in value]


def _results(edition: Edition) -> Iterator[tuple[str, bool]]:
    """A line for every cell that was run here, and whether it came out the same."""
    here = workspace()
    with records_of(edition) as kept:
        by_cell: dict[str, list[Difference]] = {}
        same = {cell.name for cell in kept.cells if here.results.has(cell) and _same(cell, here, kept)}
        here.cells = [cell for cell in here.cells if here.results.has(cell) and cell.name not in same]
        kept.cells = [cell for cell in kept.cells if cell in here.cells]
        for each in differences(kept, here):
            by_cell.setdefault(each.reading.cell.name, []).append(each)
    yield from ((f"{name}: equal, bit by bit", True) for name in sorted(same))
    for name, found in by_cell.items():
        worst = min((each for each in found), key=lambda each: VERDICTS.index(each.verdict))
        reading = worst.reading
        line = f"{name}: {worst.verdict}"
        if worst.verdict == "different":
            line += f", as {reading.measure} of {reading.way} ways: {worst.difference:+.2f} ± {worst.interval:.2f}"
        yield line, worst.verdict != "different"


def _same(cell: Cell, here: RecordsSide, kept: RecordsSide) -> bool:
    """Whether the records of all seeds are those that the edition's are parts of."""
    ours, theirs = (
        {seed: record_digest(folder / RECORDS) for seed, folder in side.results.folders(cell).items()}
        for side in (here, kept)
    )
    return ours == theirs
