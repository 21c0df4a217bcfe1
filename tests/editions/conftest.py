"""One edition of the small grid, in a clone that has nothing but what git keeps."""

import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from repro.editions.edition import EDITIONS, Edition
from tests.paths import ROOT
from tests.pipeline.workspace import make_workspace
from tools.editions.keeping import keep

NAME = "small"


@pytest.fixture(scope="session")
def kept(workspace: tuple[Path, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with the edition: no data, tasks, models or records besides."""
    clone = make_workspace(tmp_path_factory.mktemp("edition"))
    with chdir(workspace[0]):
        keep(NAME)
    shutil.move(workspace[0] / EDITIONS, clone / EDITIONS)
    shutil.copy(ROOT / "README.md", clone)
    return clone


@pytest.fixture
def clone(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to work in."""
    shutil.copytree(kept, tmp_path / "clone")
    monkeypatch.chdir(tmp_path / "clone")
    return tmp_path / "clone"


@pytest.fixture
def edition(clone: Path) -> Edition:
    return Edition(EDITIONS / NAME)


@pytest.fixture
def beside(workspace: tuple[Path, list[str]], kept: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The workspace with the edition of it."""
    folder = workspace[0]
    shutil.copytree(kept / EDITIONS, folder / EDITIONS)
    monkeypatch.chdir(folder)
    yield folder
    shutil.rmtree(folder / EDITIONS)
