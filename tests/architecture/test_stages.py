"""DVC does not follow imports, so each stage declares the code it reaches: all of it, and nothing else."""

from functools import cache
from pathlib import Path

from dvc.repo import Repo

from repro import paths
from repro.report.needs import required_cells
from stages._grid import read_grid
from stages._params import read_params
from tests.architecture.reach import OURS, ROOT, reach


@cache
def stages() -> dict[str, tuple[str, frozenset[Path]]]:
    """Every resolved stage: its command and the code it declares, as DVC itself sees them."""
    repo = Repo(str(ROOT))
    declared = {}
    for stage in repo.index.stages:
        named = {Path(dep.fspath).relative_to(ROOT) for dep in stage.deps if dep.protocol == "local" and dep.fspath}
        declared[stage.addressing] = (str(stage.cmd), frozenset(named))
    shared = {paths.code(name): declared[f"code_{name}"][1] for name in SHARED}
    return {
        name: (command, frozenset(one for path in named for one in shared.get(path, {path}) if one.parts[0] in OURS))
        for name, (command, named) in declared.items()
    }


SHARED = ("train", "evaluate")
# They record, show and check; no result depends on them. Package descriptions hold no code.
DECIDE_NOTHING = (
    *("_arguments", "_experiment", "_grid", "_params", "_processes", "_progress", "_rank", "_tracking"),
    *("__init__", "errors", "files", "options", "paths", "registry"),
)
# A package whose files are one unit: an edit in one of them re-runs whatever uses the package.
UNITS = (
    *("repro/data", "repro/preparation", "repro/models", "repro/methods/shared", "repro/training"),
    *("repro/evaluation", "repro/results", "repro/report", "stages/shared"),
)


def reached_by(command: str) -> set[Path]:
    """The files that `python -m stages NAME CELL` loads and that decide its result, its own method's among them."""
    _, _, _, stage, *told = command.split()
    files = reach(f"stages.{stage}")
    if Path("repro/methods/registry.py") in files:
        method = told[told.index("--method") + 1] if "--method" in told else read_params(ROOT / "params.yaml").method
        files |= reach(f"repro.methods.{method}")
    return {file for file in files if not file.stem.startswith(DECIDE_NOTHING)}


def files_below(path: Path) -> set[Path]:
    """The Python files that a declared dependency stands for."""
    if (ROOT / path).is_dir():
        return {file.relative_to(ROOT) for file in (ROOT / path).rglob("*.py")}
    return {path}


def test_every_stage_declares_what_it_reaches_and_nothing_else() -> None:
    assert len(stages()) > 100
    for name, (command, code) in stages().items():
        if name.startswith("code_"):
            assert {Path(told) for told in command.split()[5:]} == code, f"{name} hashes what it depends on"
            continue
        reached = reached_by(command)
        declared = set().union(*map(files_below, code))
        assert reached <= declared, f"{name} also reaches {sorted(map(str, reached - declared))}"
        for path in code:
            files = files_below(path)
            idle = not files & reached if str(path) in UNITS else not files <= reached
            assert not idle, f"{name} declares {path} but does not load it"


def test_every_cell_that_the_paper_needs_is_measured() -> None:
    stored = {"mini": {5, 10, 15, "all"}, "tiered": {5, "all"}, "heterogeneous": {5}, "office": {5}}
    grid = read_grid()
    lines = grid["cells"] | grid["untrained"] | grid["adapted"]
    for need in required_cells():
        measure = lines[need.cell.name]["measure"]
        for protocol, way in need.protocols:
            if protocol == "seen":
                assert measure["seen"], need.cell.name
            else:
                wanted = way if way in stored[need.cell.dataset] else "all"
                assert wanted in measure["ways"], f"{need.cell.name}: {way} ways"


def test_a_line_of_the_grid_is_named_after_what_it_says() -> None:
    grid = read_grid()
    for name, line in (grid["cells"] | grid["untrained"] | grid["adapted"]).items():
        cell = line["cell"]
        assert f"{name}-".startswith(f"{cell['dataset']}-{cell['method']}-{cell['shot']}shot-")
        assert line.get("base") is None or grid["cells"][line["base"]]["cell"]["method"] == line["base_method"]
    for name, line in grid["pretrained"].items():
        assert name == f"{line['dataset']}-{'random' if line.get('random') else line['classifier']}"


def test_an_edited_method_touches_its_own_cells_only() -> None:
    users = {name for name, (_, code) in stages().items() if Path("repro/methods/protonet.py") in code}
    of_protonet = {name for name in stages() if "-protonet-" in name or "upper_bound" in name}
    assert users == of_protonet
