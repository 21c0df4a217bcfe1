"""Imports point one way, and the library stays deaf to Sacred, DVC, the command line and the terminal."""

import ast
from pathlib import Path

import pytest

from stages.settings.code import Code
from tests.paths import ROOT, sources

FOUNDATION = {"cards", "errors", "files", "options", "paths"}
# Each package may import itself, the foundation, and what is listed.
MAY_IMPORT = {
    "cards": set(),
    "errors": set(),
    "files": set(),
    "options": set(),
    "paths": set(),
    "data": set(),
    "preparation": {"data"},
    "models": {"data"},
    "methods": {"models", "data"},
    "training": {"methods", "models", "data"},
    "evaluation": {"methods", "models", "data"},
    "trained": {"evaluation", "methods", "models", "data"},
    "results": set(),
    "report": {"results"},
    "editions": {"report", "results", "data"},
}
FORBIDDEN_LIBRARIES = {"sacred", "dvc", "argparse", "pymongo", "tqdm", "rich"}
LIBRARY = sorted(path.relative_to(ROOT) for path in (ROOT / "repro").rglob("*.py"))
CODE = Code(ROOT)


def room_of(module_or_file: str) -> str:
    """The package below repro/ that a dotted name or path belongs to; empty for repro itself."""
    parts = module_or_file.removesuffix(".py").replace("/", ".").split(".")
    return parts[1] if len(parts) > 1 and parts[1] != "__init__" else ""


def test_every_room_has_a_place_in_the_order() -> None:
    assert {room_of(str(file)) for file in LIBRARY} - {""} <= set(MAY_IMPORT)


@pytest.mark.parametrize("file", LIBRARY, ids=str)
def test_imports_point_one_way(file: Path) -> None:
    room = room_of(str(file))
    allowed = MAY_IMPORT.get(room, set()) | FOUNDATION | {room, ""}
    wrong = {name for name in CODE.imports_of(file) if name.startswith("stages") or room_of(name) not in allowed}
    assert not wrong, f"{file} imports {sorted(wrong)}; {room} may import {sorted(allowed - {''})}"


@pytest.mark.parametrize("file", LIBRARY, ids=str)
def test_the_library_is_deaf(file: Path) -> None:
    tree = ast.parse((ROOT / file).read_text())
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    printed = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Call) and _name(node.func) == "print"]
    assert not imported & FORBIDDEN_LIBRARIES
    assert not printed, f"{file} prints in lines {printed}; log or yield instead"


def test_what_a_module_keeps_to_itself_is_taken_by_no_other() -> None:
    """A leading underscore; of DVC one file alone takes such names. Stages know no tool."""
    files = sources()
    assert len(files) > 300
    for file in files:
        tree = ast.parse((ROOT / file).read_text())
        taken = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        named = {f"{node.module}.{alias.name}" for node in taken for alias in node.names}
        hidden = {name for name in named if "._" in name} - {name for name in named if name.startswith("__future__")}
        assert all(name.startswith("dvc.") and file == Path("tools/scheduling/pipeline.py") for name in hidden), hidden
        assert not (file.parts[0] == "stages" and any(name.startswith("tools.") for name in named)), file


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""
