"""Asking a stage or a tool something wrong, as a user would on a command line, and judging its answer.

A row of a table is what is wrong with the workspace, the command, and words that the answer must hold. Commands run in
this process through the files that a user starts, which saves importing torch for each of them; `test_processes.py`
holds that real processes answer alike.
"""

import contextlib
import io
import os
import runpy
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.paths import ROOT

Damage = Callable[[Path], object]
LINES = {"CASTLE": "mini-castle-1shot", "KNN": "mini-mc_knn-1shot", "ADAPTED": "mini-castle_adapted-1shot"}
Row = tuple[Damage, str, str]  # what is wrong, the command, words of the answer
Refused = tuple[Damage, str]  # the same where all rows of a table have one command, such as:
PLAN = "stages plan"


@dataclass(frozen=True)
class Answer:
    """How a command ended, what it said on standard error, and what it printed."""

    code: object
    said: str
    printed: str = ""

    def require(self, expected: str) -> None:
        """One sentence with these words, and an exit code that tells; argparse may remind of the usage before it."""
        lines = [line for line in self.said.splitlines() if not line.startswith(("usage: ", " "))]
        assert self.code in (1, 2), (self.code, self.said)
        assert len(lines) == 1 and expected in f"{lines[0]}\n", self.said


def ask(folder: Path, commands: str) -> Answer:
    """Run `stages NAME …` or `tools/NAME …` in `folder`, several with && between them until one fails.

    `{here}` in a command stands for the folder.
    """
    answer = Answer(0, "")
    for command in commands.split(" && "):
        answer = ask_one(folder, command)
        if answer.code:
            break
    return answer


def ask_one(folder: Path, command: str) -> Answer:
    """Run one command."""
    program, *words = [word.replace("{here}", str(folder)) for word in command.split(" ")]
    is_stage = program == "stages"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("DVC_ROOT", str(folder))  # where runs are recorded
        patch.setenv("PATH", os.environ["PATH"])  # tools put .venv before it
        patch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
        patch.setattr(sys, "argv", words if is_stage else [program, *words])
        if not is_stage:
            patch.setattr("_bootstrap.ensure_environment", lambda: None)  # this process runs in it
            patch.setattr("_bootstrap.ROOT", folder)  # as if the tools were the workspace's own
            with signals_kept():
                return ended(lambda: runpy.run_path(str(ROOT / program), run_name="__main__"))
        patch.delitem(sys.modules, f"stages.{words[0]}", raising=False)
        return ended(lambda: runpy.run_module(f"stages.{words[0]}", run_name="__main__"))


@contextlib.contextmanager
def signals_kept() -> Iterator[None]:
    """Give back the handlers that a tool replaces with its own."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ended(call: Callable[[], object]) -> Answer:
    """Call it; what it raises besides SystemExit is a crash and passes through."""
    code: object = 0
    with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            call()
        except SystemExit as end:
            code = end.code
    return Answer(code, said.getvalue(), printed.getvalue())


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Everything in the workspace: size and time of change of every file, zeros for a folder.

    Left out are the records of runs, which tell of failures too, the settings that `plan` writes, and the folder in
    which packing keeps whole images for the next run.
    """
    found = {}
    for top, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in ("runs", "settings") and not name.endswith(".packing")]
        found |= {os.path.join(top, name): (0, 0) for name in folders}
        states = {os.path.join(top, name): os.lstat(os.path.join(top, name)) for name in files}
        found |= {name: (state.st_size, state.st_mtime_ns) for name, state in states.items()}
    return found


# What can be wrong with a workspace


class RunsCode:
    """Unpickling this the usual way would make a folder."""

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, ("ran",)


def nothing(folder: Path) -> None:
    """The command itself is wrong."""


def params(**changes: Any) -> Damage:
    """params.yaml with other values; a double underscore leads into a mapping."""
    return _changed("params.yaml", changes)


def grid(**changes: Any) -> Damage:
    """paper/grid.yaml with other values; `CASTLE` and the like stand for the names of lines."""
    return _changed("paper/grid.yaml", changes)


def _changed(file: str, changes: dict[str, Any]) -> Damage:
    def change(folder: Path) -> None:
        content = yaml.safe_load((folder / file).read_text())
        for path, value in changes.items():
            *outer, last = [LINES.get(key, key) for key in path.split("__")]
            inner = content
            for key in outer:
                inner = inner.setdefault(key, {})
            inner[last] = value
        (folder / file).write_text(yaml.safe_dump(content, sort_keys=False))

    return change


def written(file: str, content: str | bytes) -> Damage:
    """A file with this content instead."""

    def write(folder: Path) -> None:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


def cut(file: str, share: float = 0.5) -> Damage:
    """A file that ends too early."""
    return lambda folder: os.truncate(folder / file, int((folder / file).stat().st_size * share))


def removed(file: str) -> Damage:
    """A file that is not there."""
    return lambda folder: (folder / file).unlink()


def gone(folder_name: str) -> Damage:
    """A folder that is not there: what is whole is not made again."""
    return lambda folder: shutil.rmtree(folder / folder_name)


def several(*damages: Damage) -> Damage:
    """All of these."""

    def damage(folder: Path) -> None:
        for each in damages:
            each(folder)

    return damage
