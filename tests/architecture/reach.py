"""Which files a module reaches through imports, read from the source without running it."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = ("repro", "stages")


@cache
def file_of(module: str) -> Path | None:
    """The module's file relative to the root, or None where it is not ours."""
    base = ROOT.joinpath(*module.split("."))
    for file in (base.with_suffix(".py"), base / "__init__.py"):
        if module.partition(".")[0] in OURS and file.is_file():
            return file.relative_to(ROOT)
    return None


@cache
def imports_of(file: Path) -> frozenset[str]:
    """Our modules that the file imports anywhere, also inside functions, with the packages they lie in."""
    named = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import; write the full name"
            named |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    packages = {".".join(name.split(".")[:depth]) for name in named for depth in range(1, name.count(".") + 1)}
    return frozenset(name for name in named | packages if file_of(name))


def reach(*modules: str) -> set[Path]:
    """All of our files that running these modules can load."""
    found: set[Path] = set()
    waiting = list(modules)
    while waiting:
        file = file_of(waiting.pop())
        if file and file not in found:
            found.add(file)
            waiting += imports_of(file)
    return found
