"""The real pipeline on the small grid, reproduced once for all tests that look at it or damage a copy of it."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from repro import paths
from repro.editions.edition import EDITIONS
from stages.launching.forkserver import fork_server
from tests.paths import ROOT
from tests.pipeline.small_params import write_small

USERS = (
    "tests/editions/",
    "tests/faults/",
    "tests/pipeline/",
    "tests/recipes/",
    "tests/tools/test_results_doctor.py",
    "tests/tools/test_tuning.py",
)


def call(folder: Path, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment |= {"OMP_NUM_THREADS": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    environment |= {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a"}
    environment |= {"GIT_COMMITTER_EMAIL": "a@b"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if check:
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done


def executed(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The stages that DVC ran."""
    lines = done.stdout.splitlines()
    return [line.split("'")[1] for line in lines if line.startswith("Running stage '")]


def make_workspace(folder: Path) -> Path:
    """A clone with small parameters, committed."""
    tracked = call(ROOT, "git", "ls-files", "--cached", "--others", "--exclude-standard").stdout.splitlines()
    wanted = ("repro", "stages", "paper", ".dvc", ".dvcignore", ".gitignore", "dvc.yaml")
    for name in tracked:
        if Path(name).is_relative_to(EDITIONS):  # tests keep their own
            continue
        if name.split("/")[0] in wanted or name == str(paths.EVALUATIONS):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    shutil.copy(ROOT / "requirements.lock", folder / "requirements.lock")
    write_small(folder)
    call(folder, "git", "init", "--quiet")
    call(folder, "git", "add", "--all")
    call(folder, "git", "commit", "--quiet", "--message", "small")
    return folder


def digests(folder: Path, tops: tuple[str, ...] = ("data", "episodes", "models", "results")) -> dict[str, str]:
    """Content of everything the pipeline wrote below these folders."""
    files = [file for top in tops for file in sorted((folder / top).rglob("*"))]
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()
    }


@pytest.fixture(scope="session")
def forked_stages() -> Iterator[None]:
    """Let the stages that tests start be forked from one server, as tools/repro does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        with fork_server() as environment:
            for name, value in environment.items():
                patch.setenv(name, value)
            yield


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory, forked_stages: None) -> tuple[Path, list[str]]:
    """The small grid, reproduced once, and the stages that ran."""
    folder = make_workspace(tmp_path_factory.mktemp("pipeline"))
    ran = executed(call(folder, "dvc", "repro"))
    call(folder, "git", "add", "--all")
    call(folder, "git", "commit", "--quiet", "--message", "reproduced")
    return folder, ran


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Run the tests of a file in one process of pytest-xdist, so that what they share is made once.

    All that use the workspace are in one, too.
    """
    # `--dist loadgroup` would do, but xdist 3.8 writes its groups into an attribute that pytest 9.2 no longer reads.
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "workspace" if nodeid.startswith(USERS) else nodeid.partition("::")[0]

    return Together(config, log) if config.getvalue("dist") == "load" else None
