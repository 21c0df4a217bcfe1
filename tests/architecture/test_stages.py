"""DVC does not follow imports, so each stage declares the code it reaches: all of it, and nothing else."""

from functools import cache
from pathlib import Path

import yaml
from dvc.repo import Repo

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


def reached_by(command: str) -> set[Path]:
    """The files that `python -m stages.NAME CELL` can load, with the file of the cell's own method."""
    words = command.split()
    modules = [words[words.index("-m") + 1]]
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    cell = params.get("cells", {}).get(words[-1], {"method": params.get("method")})
    files = reach(*modules)
    if Path("repro/methods/registry.py") in files and "cell" in command:
        files |= reach(f"repro.methods.{cell['method']}")
    return files


def files_below(path: Path) -> set[Path]:
    """The Python files that a declared dependency stands for."""
    if (ROOT / path).is_dir():
        return {file.relative_to(ROOT) for file in (ROOT / path).rglob("*.py")}
    return {path}


def test_every_stage_declares_what_it_reaches_and_nothing_else() -> None:
    assert stages()
    for name, (command, code) in stages().items():
        reached = reached_by(command)
        declared = set().union(*map(files_below, code))
        assert reached <= declared, f"{name} also reaches {sorted(map(str, reached - declared))}"
        assert declared <= reached, f"{name} declares but never loads {sorted(map(str, declared - reached))}"
