"""The code that decides a stage's result. DVC does not follow imports (treeverse/dvc#9195), so this does.

What records, shows, checks or names files decides nothing; neither do settings, whose values are compared themselves.
"""

import ast
import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

OURS = ("repro", "stages")
DECIDES_NOTHING = (
    *("repro/errors.py", "repro/options.py", "repro/paths.py", "repro/methods/registry.py"),
    *("repro/files", "stages/settings", "stages/tracking", "stages/__init__.py"),
)


class Code:
    """The files of one checkout; each is read once."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.file_of, self.digest = cache(self._file_of), cache(self._digest)
        self._imports, self._digest_of = cache(self._read_imports), cache(self._read_digest)

    def _digest(self, *modules: str) -> str:
        """One content hash for all files that these modules reach and that decide something."""
        lines = [f"{self._digest_of(file)}  {file}\n" for file in sorted(self.deciding(*modules))]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def deciding(self, *modules: str) -> set[Path]:
        """The files that these modules reach, but not through those that decide nothing."""
        return self._reached(modules, _decides_nothing)

    def reached(self, *modules: str) -> set[Path]:
        """All of our files that running these modules can load, relative to the root."""
        return self._reached(modules, lambda _: False)

    def _reached(self, modules: Sequence[str], left_out: Callable[[Path], bool]) -> set[Path]:
        found: set[Path] = set()
        waiting = list(modules)
        while waiting:
            file = self.file_of(waiting.pop())
            if file and file not in found and not left_out(file):
                found.add(file)
                waiting += self._imports(file)
        return found

    def imports_of(self, file: Path) -> frozenset[str]:
        """Our modules that a file imports anywhere, also inside functions, with the packages they lie in."""
        return self._imports(file)

    def _file_of(self, module: str) -> Path | None:
        """The module's file relative to the root, or None where it is not ours."""
        base = self.root.joinpath(*module.split("."))
        for file in (base.with_suffix(".py"), base / "__init__.py"):
            if module.partition(".")[0] in OURS and file.is_file():
                return file.relative_to(self.root)
        return None

    def _read_imports(self, file: Path) -> frozenset[str]:
        named = _named_in((self.root / file).read_bytes(), str(file))
        return frozenset(name for name in named if self.file_of(name))

    def _read_digest(self, file: Path) -> str:
        return hashlib.sha256((self.root / file).read_bytes()).hexdigest()


@cache
def _decides_nothing(file: Path) -> bool:
    return any(file.is_relative_to(nothing) for nothing in DECIDES_NOTHING)


@cache
def _named_in(source: bytes, file: str) -> frozenset[str]:
    """Everything that a source imports, with the packages it lies in."""
    named = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import; write the full name"
            named |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(
        named | {".".join(name.split(".")[:depth]) for name in named for depth in range(1, name.count(".") + 1)}
    )
