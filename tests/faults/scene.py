"""Stages run one by one in a copy of the small pipeline's workspace, in children of the warm process, and killed."""

import contextlib
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import yaml

from stages import _warm
from tests.pipeline.workspace import digests

TOPS = ("data", "episodes", "models", "results", "paper", "checkpoints")
KILLED = 128 + signal.SIGKILL


@dataclass
class Running:
    """A stage that was started: its process, and the connection on which its exit code arrives."""

    connection: socket.socket
    process: int

    def wait(self, seconds: float | None = None) -> int | None:
        """The exit code; None where the stage still runs after so many seconds."""
        if not select.select([self.connection], [], [], seconds)[0]:
            return None
        with self.connection:
            return _warm._read(self.connection, 1)[0]

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the stage itself; one that has just ended does not mind."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process, number)


class Scene:
    """A workspace in which every stage has run, and what it held then."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = yaml.safe_load((folder / "dvc.lock").read_text())["stages"]
        self.whole = self.contents()
        self._environment = {"OMP_NUM_THREADS": "1", "DVC_ROOT": str(folder)}

    def command(self, stage: str) -> list[str]:
        """A stage's name and arguments, as DVC runs it."""
        return shlex.split(self.lock[stage]["cmd"])[3:]

    def contents(self) -> dict[str, str]:
        """Every folder, and the content of every file, below the pipeline's; hidden and temporary ones among them."""
        folders = [path for top in TOPS for path in (self.folder / top).rglob("*") if path.is_dir()]
        return {str(path.relative_to(self.folder)): "folder" for path in folders} | digests(self.folder, TOPS)

    def clear(self, stage: str) -> None:
        """Remove what the stage writes, as DVC does before it runs one."""
        for out in self.lock[stage]["outs"]:
            path = self.folder / out["path"]
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def start(self, stage: str) -> Running:
        """Start a stage in a child of the warm process."""
        with contextlib.chdir(self.folder), mock.patch.dict(os.environ, self._environment):
            os.environ.pop("REPRO_MONGO_URL", None)
            return Running(*_warm._hand_over(self.command(stage)))

    def run(self, stage: str) -> float:
        """Run a stage to its end; gives the seconds that it took."""
        started = time.monotonic()
        assert self.start(stage).wait() == 0, f"{stage} failed: see what it printed"
        return time.monotonic() - started

    def launch(self, stage: str, prefix: tuple[str, ...] = (), **environment: str) -> subprocess.Popen[str]:
        """Start a stage as a user does, in a process of its own, with what it prints kept."""
        return subprocess.Popen(
            [*prefix, sys.executable, "-m", "stages", *self.command(stage)],
            cwd=self.folder,
            env={**os.environ, **self._environment, "REPRO_WARM": "0", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def kill_after(self, stage: str, seconds: float) -> None:
        """Start a stage in a cleared place and kill it; earlier, where it ends within so many seconds."""
        while True:
            self.clear(stage)
            running = self.start(stage)
            code = running.wait(seconds)
            if code is None:
                running.kill()
                code = running.wait()
            if code == KILLED:
                return
            assert code == 0, f"{stage} failed: see what it printed"
            seconds *= 0.7


def copy_workspace(source: Path, target: Path) -> Path:
    """Copy what stages need; without DVC's cache, git, and main.tex, from which TeX would make a PDF each time."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(".git", ".dvc", "main.tex", "main.pdf"))
    return target
