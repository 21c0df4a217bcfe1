"""DVC does not follow imports, so each stage declares the code it reaches: all of it, and nothing else."""

from functools import cache
from pathlib import Path

from dvc.repo import Repo

from repro.report.needs import required_cells
from stages._configs import measured_cells
from stages._params import read_params
from tests.architecture.reach import OURS, ROOT, reach


@cache
def stages() -> dict[str, tuple[str, frozenset[Path]]]:
    """Every resolved stage: its command and the code it declares, as DVC itself sees them."""
    repo = Repo(str(ROOT))
    declared = {}
    for stage in repo.index.stages:
        paths = {Path(dep.fspath).relative_to(ROOT) for dep in stage.deps if dep.protocol == "local" and dep.fspath}
        code = frozenset(path for path in paths if path.parts[0] in OURS)
        declared[stage.addressing] = (str(stage.cmd), code)
    return declared


# They record, show and check; no result depends on them. Package descriptions hold no code.
DECIDE_NOTHING = ("_experiment", "_params", "_progress", "_tracking", "__init__")
# A package whose files are one unit: an edit in one of them re-runs whatever uses the package.
UNITS = (
    "repro/models",
    "repro/methods",
    "repro/methods/shared",
    "repro/report",
    "repro/results",
    "repro/evaluation",
    "repro/data/sources",
)


def reached_by(command: str) -> set[Path]:
    """The files that `python -m stages NAME CELL` loads and that decide its result, its own method's among them."""
    _, _, _, stage, *cell = command.split()
    params = read_params(ROOT / "params.yaml")
    files = reach(f"stages.{stage}")
    if Path("repro/methods/registry.py") in files:
        files |= reach(f"repro.methods.{measured_cells(params)[cell[0]].method}")
    return {file for file in files if not (file.stem.startswith(DECIDE_NOTHING) and file.parts[0] in OURS)}


def files_below(path: Path) -> set[Path]:
    """The Python files that a declared dependency stands for."""
    if (ROOT / path).is_dir():
        return {file.relative_to(ROOT) for file in (ROOT / path).rglob("*.py")}
    return {path}


def test_every_stage_declares_what_it_reaches_and_nothing_else() -> None:
    assert len(stages()) > 100
    for name, (command, code) in stages().items():
        reached = reached_by(command)
        declared = set().union(*map(files_below, code))
        assert reached <= declared, f"{name} also reaches {sorted(map(str, reached - declared))}"
        for path in code:
            files = files_below(path)
            idle = not files & reached if str(path) in UNITS else not files <= reached
            assert not idle, f"{name} declares {path} but does not load it"


def test_every_cell_that_the_paper_needs_is_measured() -> None:
    measured = measured_cells(read_params(ROOT / "params.yaml"))
    missing = {need.cell.name for need in required_cells()} - set(measured)
    assert not missing


def test_an_edited_method_touches_its_own_cells_only() -> None:
    users = {name for name, (_, code) in stages().items() if Path("repro/methods/protonet.py") in code}
    of_protonet = {name for name in stages() if "-protonet-" in name or "upper_bound" in name}
    assert users == of_protonet
