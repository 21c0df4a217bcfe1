"""tools/doctor --results on the small pipeline: whole, then damaged in one place at a time."""

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.scene import flip

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from results_doctor import check_results, dvc_problems, stored_tasks  # noqa: E402

pytestmark = pytest.mark.timeout(1200)
CELL = "mini-castle-1shot"
EVALUATE = f"evaluate@{CELL}"


@pytest.fixture(scope="module")
def copied(workspace: tuple[Path, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small workspace with DVC's cache, git and all, to be damaged."""
    target = tmp_path_factory.mktemp("doctor") / "copy"
    shutil.copytree(workspace[0], target, symlinks=True)
    return target


@pytest.fixture
def damage(copied: Path) -> Iterator[Callable[[str, Callable[[Path], object]], None]]:
    """Do something to a file or folder of the workspace; it is restored afterwards."""
    done: list[tuple[Path, Path]] = []

    def do(place: str, what: Callable[[Path], object]) -> None:
        path, kept = copied / place, copied.parent / f"kept-{len(done)}"
        shutil.copytree(path, kept) if path.is_dir() else shutil.copy2(path, kept)
        done.append((path, kept))
        what(path)

    yield do
    for path, kept in done:
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        shutil.move(kept, path)
    stored_tasks.cache_clear()


def examined(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    code = check_results(folder)
    return code, capsys.readouterr().out.splitlines()


def empty(file: Path) -> None:
    """Leave nothing in a file; as a new file, so that a cache that shares it keeps its own."""
    file.unlink()
    file.touch()


def test_a_whole_workspace_is_one_line(copied: Path, capsys) -> None:
    code, lines = examined(copied, capsys)
    assert (code, len(lines)) == (0, 1), lines
    assert "6 cells have whole records and their runs" in lines[0]


@pytest.mark.parametrize(
    ("place", "what", "said", "step"),
    [
        (
            f"results/cells/{CELL}/tasks.parquet",
            flip,
            f"modified since evaluate@{CELL}",
            f"`dvc repro evaluate@{CELL}`",
        ),
        (f"results/cells/{CELL}", shutil.rmtree, f"deleted since {EVALUATE}", f"`dvc repro {EVALUATE}`"),
        (f"results/cells/{CELL}/SHA256SUMS", empty, f"modified since {EVALUATE}", f"`dvc repro {EVALUATE}`"),
        ("data/mini/images.npy", flip, "modified since splits@mini wrote it", "`dvc repro splits@mini`"),
        (
            f"models/cells/{CELL}/model.safetensors",
            flip,
            f"modified since train@{CELL} wrote it",
            f"`dvc repro train@{CELL}`",
        ),
        ("paper/tables.tex", flip, "modified since paper wrote it", "`dvc repro paper`"),
        ("params.yaml", lambda path: path.write_text(path.read_text() + "\n"), "", ""),
    ],
    ids=["record", "cell", "seal", "array", "model", "table", "nothing"],
)
def test_damage_is_named_with_the_next_step(place, what, said, step, copied: Path, damage, capsys) -> None:
    damage(place, what)
    code, lines = examined(copied, capsys)
    assert code == int(bool(said)), lines
    if said:
        assert len(lines) == 2 and lines[0].startswith(place) and said in lines[0] and step in lines[0], lines


def test_what_dvc_says_of_a_folder_that_is_none_of_its_own_is_one_sentence(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (problem,) = dvc_problems(set())
    assert problem.startswith("`dvc status` fails (ERROR: you are not inside of a DVC repository"), problem
    assert "[" not in problem


def test_a_deleted_run_is_named(copied: Path, damage, capsys) -> None:
    (run,) = (copied / "runs").glob(f"*-evaluate-{CELL}-??????")
    damage(f"runs/{run.name}", shutil.rmtree)
    code, lines = examined(copied, capsys)
    assert code == 1
    assert lines[0].startswith(f"results/cells/{CELL}/tasks.parquet: no run in runs/ says that it wrote them"), lines
    assert f"`dvc repro -f evaluate@{CELL}`" in lines[0]


def test_a_run_that_did_not_end_is_named(copied: Path, damage, capsys) -> None:
    (run,) = (copied / "runs").glob(f"*-evaluate-{CELL}-??????")
    ended = lambda path: path.write_text(path.read_text().replace("COMPLETED", "RUNNING"))  # noqa: E731
    damage(f"runs/{run.name}/run.json", ended)
    code, lines = examined(copied, capsys)
    assert code == 1
    assert f"its run {run.name} is RUNNING" in lines[0]
