"""Set-up: once, skipped when nothing changed, continued when it was interrupted, repaired when it is broken."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT
from tools import _bootstrap


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone whose lock asks for nothing, so that only the set-up's own behaviour shows."""
    folder = tmp_path_factory.mktemp("a clone with spaces ü")
    (folder / "tools").mkdir()
    for name in ("_bootstrap.py", "command_line.py", "setup"):
        shutil.copy(ROOT / "tools" / name, folder / "tools" / name)
    shutil.copytree(ROOT / "repro" / "files", folder / "repro" / "files")
    shutil.copy(ROOT / "repro" / "errors.py", folder / "repro")
    (folder / "requirements.lock").write_text("# nothing\n")
    for name in (".git", ".dvc"):
        (folder / name).mkdir()
    return folder


def set_up(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / "tools" / "setup")]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_life_of_an_environment(clone: Path) -> None:
    first = set_up(clone)
    assert first.returncode == 0, first.stderr
    assert "done in" in first.stderr

    again = set_up(clone)
    assert (again.returncode, again.stderr) == (0, "")
    assert "up to date" in again.stdout

    (clone / "requirements.lock").write_text("# changed\n")
    assert "done in" in set_up(clone).stderr

    (clone / ".venv" / "installed.sha256").unlink()  # as if killed while pip ran
    assert "done in" in set_up(clone).stderr

    (clone / ".venv" / "bin" / "python").unlink()  # as if killed while the environment was made
    assert "done in" in set_up(clone).stderr
    assert (clone / ".venv" / "bin" / "python").exists()


@pytest.mark.parametrize("streams", [">/dev/full", "2>/dev/full", "<&- >&- 2>&-", "| true"])
@pytest.mark.parametrize("option", ["", "--nonsense"])
def test_streams_that_nobody_reads_change_nothing(option: str, streams: str, clone: Path) -> None:
    assert set_up(clone).returncode == 0
    command = f"set -o pipefail; '{sys.executable}' tools/setup {option} {streams}"
    done = subprocess.run(["bash", "-c", command], cwd=clone, capture_output=True, text=True, check=False)
    assert done.returncode == (2 if option else 0) and "Traceback" not in done.stderr, done.stderr


def test_an_environment_that_the_project_is_installed_in_is_left_as_it_is(clone: Path) -> None:
    assert set_up(clone).returncode == 0
    (clone / "requirements.lock").write_text("# changed, but not for an environment of `uv sync`\n")
    (package,) = (clone / ".venv").glob("lib/python*/site-packages")
    (package / "castle_repro-0.1.0.dist-info").mkdir()
    assert set_up(clone).stderr == ""
    (package / "castle_repro-0.1.0.dist-info").rmdir()
    assert "done in" in set_up(clone).stderr


def test_a_lock_that_cannot_be_installed_says_what_to_do(clone: Path) -> None:
    (clone / "requirements.lock").write_text("./no-such-package\n")
    failed = set_up(clone)
    assert failed.returncode == 1
    assert "set-up could not install requirements.lock" in failed.stderr
    assert "run the same command again" in failed.stderr


def test_a_lock_that_is_not_there_is_one_sentence(clone: Path) -> None:
    (clone / "requirements.lock").rename(clone / "away.lock")
    failed = set_up(clone)
    (clone / "away.lock").rename(clone / "requirements.lock")
    assert failed.returncode == 1 and "Traceback" not in failed.stderr
    assert "requirements.lock: No such file or directory; the set-up needs it" in failed.stderr


@pytest.mark.parametrize(
    "tool", sorted(p.name for p in (ROOT / "tools").iterdir() if p.is_file() and "." not in p.name)
)
def test_every_tool_explains_itself(tool: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / tool), "--help"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 3


def test_every_pinned_version_has_hashes_and_names_no_host() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    pins = [line for line in lock.splitlines() if "==" in line and not line.lstrip().startswith("#")]
    assert len(pins) > 100
    assert all(line.rstrip().endswith("\\") for line in pins)  # hashes follow on the next lines
    assert "://" not in lock


def test_an_interrupt_ends_a_tool_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_bootstrap, "ensure_environment", lambda: None)
    with pytest.raises(SystemExit) as ended:
        _bootstrap.run_tool(interrupted)
    assert ended.value.code == 130
