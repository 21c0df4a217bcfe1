"""tools/doctor --results on the small pipeline: whole, then damaged in one place at a time."""

import hashlib
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.pipeline.workspace import call
from tests.tools.rot import command_in, rot

sys.path.insert(0, str(ROOT / "tools"))

from tools.dvc_doctor import Cache, cache_problems, dvc, dvc_problems, read_outputs  # noqa: E402
from tools.results_doctor import check_results, stored_tasks  # noqa: E402

pytestmark = pytest.mark.timeout(1200)
CELL = "mini-castle-1shot"
EVALUATE = f"evaluate/dvc.yaml:evaluate@{CELL}"


@pytest.fixture(scope="module")
def copied(workspace: tuple[Path, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small workspace with DVC's cache, git and all, to be damaged; they share no file, so that either can be."""
    target = tmp_path_factory.mktemp("doctor") / "copy"
    shutil.copytree(workspace[0], target, symlinks=True)
    call(target, "dvc", "config", "--local", "cache.type", "copy")
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


def test_a_lock_without_stages_names_no_output(tmp_path: Path) -> None:
    (tmp_path / "dvc.lock").write_text("schema: '2.0'\n")
    assert read_outputs(tmp_path / "dvc.lock") == {}


def test_a_whole_workspace_is_one_line(copied: Path, capsys) -> None:
    code, lines = examined(copied, capsys)
    assert (code, len(lines)) == (0, 1), lines
    assert "6 cells have whole records and their runs" in lines[0]


@pytest.mark.parametrize(
    ("place", "what", "said", "step"),
    [
        (f"results/cells/{CELL}", shutil.rmtree, f"deleted since {EVALUATE}", f"`dvc repro {EVALUATE}`"),
        (
            f"results/cells/{CELL}/0/SHA256SUMS",
            empty,
            f"modified since {EVALUATE}",
            f"`rm -r results/cells/{CELL} && dvc checkout results/cells/{CELL}`",
        ),
        ("requirements.lock", lambda path: path.write_text(path.read_text() + "\n"), "", ""),
    ],
    ids=["cell", "seal", "nothing"],
)
def test_damage_is_named_with_the_next_step(place, what, said, step, copied: Path, damage, capsys) -> None:
    damage(place, what)
    code, lines = examined(copied, capsys)
    assert code == int(bool(said)), lines
    if said:
        assert len(lines) == 2 and lines[0].startswith(place) and said in lines[0] and step in lines[0], lines


# The files of every kind that the pipeline leaves, by output.
KINDS = {
    "data/mini/0": ["images.npy", "manifest.parquet", "dataset.json", "contact_sheet.png", "SHA256SUMS"],
    "episodes/mini/test/0": ["5way-1shot.safetensors", "seen-1shot.safetensors"],
    "episodes/mini/val/0": ["5way-1shot.safetensors"],
    "models/pretrained/mini-standard/0": ["model.safetensors", "model.json", "embeddings.safetensors", "curve.csv"],
    f"models/cells/{CELL}/0": ["embeddings.safetensors", "model.safetensors", "curve.csv", "model.json", "SHA256SUMS"],
    f"results/cells/{CELL}/0": [
        *("tasks.parquet", "metrics.json", "curve.json", "images.parquet", "confusions.parquet", "training.csv"),
        *("origin.json", "SHA256SUMS"),
    ],
    "paper": ["tables.tex"],
}


@pytest.mark.parametrize("number", range(5))
def test_a_flipped_bit_with_unchanged_time_is_named_with_a_command_that_repairs_it(
    number: int, copied: Path, capsys
) -> None:
    places = [f"{output}/{files[number]}" for output, files in KINDS.items() if number < len(files)]
    whole = {place: (copied / place).read_bytes() for place in places}
    for place in places:
        rot(copied / place)
    code, lines = examined(copied, capsys)
    assert (code, sorted(line.partition(": modified since ")[0] for line in lines[:-1])) == (1, sorted(places)), lines
    for line in lines[:-1]:
        call(copied, "sh", "-c", command_in(line))
    assert {place: (copied / place).read_bytes() for place in places} == whole
    assert examined(copied, capsys)[0] == 0


def test_a_folder_or_a_broken_link_in_the_place_of_a_copy_is_a_damaged_copy_with_a_remedy(tmp_path: Path) -> None:
    copies = Cache(tmp_path)
    for place in (copies.place("ab" + 30 * "c"), copies.place("ab" + 30 * "d")):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir() if place.name.startswith("c") else place.symlink_to("nowhere")
    for line in cache_problems(copies, {}, set()):
        call(tmp_path, "sh", "-c", command_in(line))
    assert not list(copies.folder.glob("??/*"))


@pytest.mark.parametrize("also_the_file", [False, True])
def test_a_damaged_copy_in_the_cache_is_named_and_repaired(also_the_file: bool, copied: Path, capsys) -> None:
    file = copied / "data" / "mini" / "0" / "manifest.parquet"
    whole = file.read_bytes()
    name = hashlib.md5(whole, usedforsecurity=False).hexdigest()
    copy = copied / ".dvc" / "cache" / "files" / "md5" / name[:2] / name[2:]
    rot(copy)
    if also_the_file:
        rot(file)
    code, lines = examined(copied, capsys)
    assert (code, len(lines)) == (1, 2 + also_the_file), lines
    assert lines[-2].startswith(f"{copy}: DVC's copy is no longer what its name says; run `rm -rf ")
    for line in lines[:-1]:
        call(copied, "sh", "-c", command_in(line))
    assert file.read_bytes() == copy.read_bytes() == whole
    assert examined(copied, capsys)[0] == 0


def test_a_flipped_bit_in_the_record_of_a_run_is_named(copied: Path, damage, capsys) -> None:
    (run,) = (copied / "runs").glob(f"*-evaluate-{CELL}-seed0-??????")
    for name in ("run.json", "config.json", "metrics.json", "metrics.jsonl", "cout.txt", "artifacts/metrics.json"):
        damage(f"runs/{run.name}/{name}", rot)
        _, lines = examined(copied, capsys)
        assert any(line.startswith(f"runs/{run.name}/{name}: content is ") for line in lines), lines


def test_a_run_without_its_seal_and_a_source_of_another_content_are_named(copied: Path, damage, capsys) -> None:
    (run,) = (copied / "runs").glob(f"*-evaluate-{CELL}-seed0-??????")
    source = sorted((copied / "runs" / "_sources").glob("evaluate_*"))[0]
    damage(f"runs/{run.name}/SHA256SUMS", Path.unlink)
    damage(f"runs/_sources/{source.name}", rot)
    _, lines = examined(copied, capsys)
    assert any(line.startswith(f"runs/{run.name}: no readable SHA256SUMS") for line in lines), lines
    assert any(line.startswith(f"runs/_sources/{source.name}: content is not what") for line in lines), lines


def test_a_workspace_where_nothing_has_run_is_one_line(copied: Path, tmp_path: Path, capsys) -> None:
    for name in ("params.yaml", "dvc.yaml", "dvc.lock"):
        shutil.copy(copied / name, tmp_path)
    (tmp_path / "paper").mkdir()
    shutil.copy(copied / "paper" / "grid.yaml", tmp_path / "paper")
    assert examined(tmp_path, capsys) == (1, [f"{tmp_path}: nothing has run here yet; `tools/repro` runs everything"])


def test_what_dvc_says_of_a_folder_that_is_none_of_its_own_is_one_sentence(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (problem,) = dvc_problems(set())
    assert problem.startswith("`dvc status` fails (you are not inside of a DVC repository"), problem
    assert "[" not in problem


def test_what_dvc_says_of_a_lock_that_is_none_names_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert dvc("init", "--no-scm").returncode == 0
    (tmp_path / "dvc.yaml").write_text("stages: {a: {cmd: echo, outs: [b]}}")
    (tmp_path / "dvc.lock").write_text("[")
    (problem,) = dvc_problems(set())
    assert problem == "`dvc status` fails ('./dvc.lock' is invalid.); repair dvc.yaml, dvc.lock or those in evaluate/"


def test_a_deleted_run_is_named(copied: Path, damage, capsys) -> None:
    (run,) = (copied / "runs").glob(f"*-evaluate-{CELL}-seed0-??????")
    damage(f"runs/{run.name}", shutil.rmtree)
    code, lines = examined(copied, capsys)
    assert code == 1
    assert lines[0].startswith(f"results/cells/{CELL}/0/tasks.parquet: no run in runs/ says that it wrote them"), lines
    assert f"`rm -r results/cells/{CELL}/0 && dvc repro {EVALUATE}`" in lines[0]


def test_a_run_that_did_not_end_is_named(copied: Path, damage, capsys) -> None:
    (run,) = (copied / "runs").glob(f"*-evaluate-{CELL}-seed0-??????")
    ended = lambda path: path.write_text(path.read_text().replace("COMPLETED", "RUNNING"))  # noqa: E731
    damage(f"runs/{run.name}/run.json", ended)
    code, lines = examined(copied, capsys)
    assert code == 1
    assert f"its run {run.name} is RUNNING" in lines[0]
