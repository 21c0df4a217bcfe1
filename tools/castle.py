"""`castle NAME …` runs `tools/NAME …`: the console command of an installed checkout (`uv sync`, `pip install -e .`).

castle            list the tools
castle repro      run tools/repro; every further argument goes through
"""

import ast
import os
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parent


def main() -> None:
    """Become the tool that the command line names, in the environment that this command is installed in."""
    names = tools()
    match sys.argv[1:]:
        case [name, *arguments] if name in names:
            os.execv(sys.executable, [sys.executable, str(TOOLS / name), *arguments])
        case [] | ["-h"] | ["--help"]:
            print(f"usage: castle TOOL [ARGUMENT …]\n\n{_listed(names)}")
        case [name, *_]:
            sys.exit(f"error: got {name!r}, expected one of {', '.join(names)}; `castle` alone says what they do")


def tools() -> list[str]:
    """The commands of tools/, by name."""
    return sorted(each.name for each in TOOLS.iterdir() if each.is_file() and not each.suffix)


def _listed(names: list[str]) -> str:
    width = max(map(len, names))
    return "\n".join(f"  {name:{width}}  {_purpose(TOOLS / name)}" for name in names)


def _purpose(tool: Path) -> str:
    """The first line of a tool's docstring."""
    return (ast.get_docstring(ast.parse(tool.read_text(encoding="utf-8"))) or "").partition("\n")[0]
