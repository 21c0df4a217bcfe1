"""Runs of the toy stage, in this process or in one of its own, and the embedded server to copy them to."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from tests.paths import ROOT

sys.path.insert(0, str(ROOT / "tools"))

from stages.tracking import run_folders  # noqa: E402
from tools.tracking import services  # noqa: E402


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests choose their server; one that the developer uses stays out."""
    monkeypatch.delenv("REPRO_MONGO_URL", raising=False)
    monkeypatch.delenv("DVC_ROOT", raising=False)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the toy stage in a process of its own, recording under `runs`; what still runs at the end is killed."""
    started = []

    def start_one(environment: dict[str, str] | None = None, **arguments: Any) -> subprocess.Popen[str]:
        arguments = {"runs": str(tmp_path / "runs"), **arguments}
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.tracking.toy", json.dumps(arguments)],
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start_one
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server for the tests of one module: an embedded one, or the MongoDB for tests at TEST_MONGO_URL."""
    if real := os.environ.get("TEST_MONGO_URL"):
        with MongoClient(real) as client:
            client.drop_database(services.DATABASE)
        yield services.with_database(real)
        return
    with services.embedded_server(tmp_path_factory.mktemp("embedded")) as (_, url):
        yield url


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """A home for the tools with the pinned Omniboard in it."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("NO NODE.JS HERE: the dashboard is not tested; install nodejs and npm")
    home = tmp_path_factory.mktemp("home")
    (home / "omniboard").symlink_to(services.install_omniboard(services.home()))
    return home


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A headless Chromium with a fresh profile."""
    from tests.tracking.browsing import chromium

    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def only_run(runs: Path) -> Path:
    """The one run folder there is."""
    (folder,) = run_folders(runs)
    return folder


def read(folder: Path, name: str = "run.json") -> Any:
    """A JSON file of a run's record."""
    return json.loads((folder / name).read_text())
