"""Stages run one by one in a copy of the small pipeline's workspace, forked from a server, and killed."""

import contextlib
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from repro import paths
from tests.pipeline.workspace import digests

TOPS = ("data", "episodes", "models", "results", "paper", "checkpoints")
LAUNCH = str(Path(__file__).with_name("launch.py"))
KILLED = 128 + signal.SIGKILL


@dataclass
class Running:
    """A stage that was started: its launcher, which ends with its exit code, and the stage's own process."""

    launcher: subprocess.Popen[str]
    stage: int
    printed: Path

    def wait(self, seconds: float | None = None) -> int | None:
        """The exit code; None where the stage still runs after these seconds."""
        try:
            return self.launcher.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def signal(self, number: int) -> None:
        """Send a signal to the stage itself; one that has just ended does not mind."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.stage, number)

    def said(self) -> str:
        """What the stage has printed."""
        return self.printed.read_text()


class Scene:
    """A workspace in which every stage has run, and what it held then."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock: dict[str, Any] = {}
        for lock in (paths.LOCK, paths.EVALUATIONS_LOCK):
            self.lock |= yaml.safe_load((folder / lock).read_text())["stages"]
        self.whole = self.contents()

    def command(self, stage: str) -> list[str]:
        """A stage's name and arguments, as `python -m stages` has them under DVC."""
        return [word.replace("{}", stage.partition("@")[2]) for word in shlex.split(self.lock[stage]["cmd"])[3:]]

    def contents(self) -> dict[str, str]:
        """Every folder, and the content of every file, below the pipeline's; hidden and temporary ones among them."""
        folders = [path for top in TOPS for path in (self.folder / top).rglob("*") if path.is_dir()]
        return {str(path.relative_to(self.folder)): "folder" for path in folders} | digests(self.folder, TOPS)

    def clear(self, stage: str) -> None:
        """Remove what the stage writes, as DVC does before it runs one."""
        for out in self.lock[stage]["outs"]:
            path = self.folder / out["path"]
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def start(self, stage: str, *prefix: str, **environment: str) -> Running:
        """Start a stage, forked from the server."""
        printed = self.folder / f"printed-{secrets.token_hex(4)}.txt"
        inherited = {name: value for name, value in os.environ.items() if name != "REPRO_MONGO_URL"}
        with printed.open("w") as stream:
            launcher = subprocess.Popen(
                [*prefix, sys.executable, LAUNCH, *self.command(stage)],
                cwd=self.folder,
                env={**inherited, "OMP_NUM_THREADS": "1", "DVC_ROOT": str(self.folder), **environment},
                stdout=subprocess.PIPE,
                stderr=stream,
                text=True,
            )
        with launcher.stdout or contextlib.nullcontext() as told:
            number = told.readline() if told else ""
        assert number, f"{stage} did not start: {printed.read_text()}"
        return Running(launcher, int(number), printed)

    def run(self, stage: str) -> float:
        """Run a stage to its end; gives the seconds that it took."""
        started = time.monotonic()
        running = self.start(stage)
        assert running.wait() == 0, running.said()
        return time.monotonic() - started

    def kill_after(self, stage: str, seconds: float) -> None:
        """Start a stage in a cleared place and kill it; earlier, where it ends within these seconds."""
        while True:
            self.clear(stage)
            running = self.start(stage)
            code = running.wait(seconds)
            if code is None:
                running.signal(signal.SIGKILL)
                code = running.wait()
            if code == KILLED:
                return
            assert code == 0, running.said()
            seconds *= 0.7


def copy_workspace(source: Path, target: Path) -> Path:
    """Copy what stages need; without DVC's cache, git, and main.tex, from which TeX would make a PDF each time."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(".git", ".dvc", "main.tex", "main.pdf"))
    return target


def flip(file: Path, at: int | None = None) -> None:
    """Change one bit of a file, in its middle by default; as a new file: a cache that shares it keeps its own."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2 if at is None else at] ^= 1
    file.unlink()
    file.write_bytes(content)
