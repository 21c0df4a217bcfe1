"""The user and password of REPRO_MONGO_URL are in no file and no output, whatever goes wrong."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bad_inputs.asking import ask
from tests.conftest import note_origin, write_tiny_dataset
from tests.paths import ROOT
from tests.pipeline.small_params import write_small
from tests.tracking.conftest import services

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("forked_stages")]
USER, PASSWORD = "maintainer", "s3cret%2Fw0rd"
URL = f"mongodb://{USER}:{PASSWORD}@127.0.0.1:1/x"
SECRETS = (USER, PASSWORD, "s3cret/w0rd")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    write_small(tmp_path)
    write_tiny_dataset(tmp_path / "data" / "mini" / "0")
    note_origin(tmp_path / "data" / "mini" / "0")
    for name in ("repro", "stages", "requirements.lock"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def stage(folder: Path, *words: str, url: str = URL) -> str:
    """Run a stage as a process; what it said."""
    environment = os.environ | {"DVC_ROOT": str(folder), "REPRO_MONGO_URL": url, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "stages", *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return f"{done.returncode} {done.stdout} {done.stderr}"


def written(folder: Path) -> str:
    """Everything that lies in the workspace, names included; the linked code is not followed."""
    files = [Path(top) / name for top, _, names in os.walk(folder) for name in names]
    contents = [file.read_bytes().decode("latin1") for file in files if file.is_file() and not file.is_symlink()]
    return "\n".join([*map(str, files), *contents])


def test_a_stage_that_ends_well_and_one_that_fails_keep_them_to_themselves(workspace: Path) -> None:
    planned, said = stage(workspace, "plan"), stage(workspace, "episodes", "mini")
    assert said.startswith("0 ") and "tools/sync" in said
    shutil.rmtree(workspace / "episodes")
    (workspace / "data" / "mini" / "0" / "manifest.parquet").write_bytes(b"")
    failed = stage(workspace, "episodes", "mini")
    assert failed.startswith("2 ") and "manifest.parquet: content is" in failed
    wrong = stage(workspace, "episodes", "mini", url=URL.replace(":1/", ":port/"))
    assert wrong.startswith("2 ")
    kept = written(workspace)
    assert kept.count("run.json") >= 4
    for secret in SECRETS:
        assert secret not in planned + said + failed + wrong
        assert secret not in kept


@pytest.mark.parametrize("url", [URL, URL.replace(":1/", ":port/"), URL.replace("mongodb", "mongo")])
@pytest.mark.parametrize(
    "tool", ["tools/sync --runs {here}", "tools/omniboard --once --no-sync --port PORT --home {here}/home"]
)
def test_tools_name_the_server_without_them(
    tool: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPRO_MONGO_URL", url)
    monkeypatch.setattr(services, "install_omniboard", lambda home: home)
    answer = ask(tmp_path, tool.replace("PORT", str(services.free_port())))
    answer.require("Mongo")
    for secret in SECRETS:
        assert secret not in answer.said and secret not in written(tmp_path)


def test_nothing_in_the_repository_looks_like_a_credential() -> None:
    """Keys and tokens in the forms that the usual services give them; URLs with a password outside of tests."""
    patterns = [
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
        r"\bgh[pousr]_[A-Za-z0-9]{36}",
        r"\bAKIA[0-9A-Z]{16}\b",
        r"\bxox[abpr]-[A-Za-z0-9-]{10,}",
        r"\bhf_[A-Za-z0-9]{30,}",
        r"mongodb(\+srv)?://[^/\s:@'\"]+:[^/\s@'\"]+@",
    ]
    arguments = [word for pattern in patterns for word in ("-e", pattern)]
    command = ["git", "grep", "-I", "-l", "-P", *arguments, "--", ".", ":!tests"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.stdout == "" and found.returncode == 1, found.stdout + found.stderr
