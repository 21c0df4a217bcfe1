"""DVC's cache and the workspace share files (.dvc/config): what a stage writes replaces them and changes none."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from repro import paths
from tests.pipeline.workspace import ROOT, call
from tests.tools.rot import command_in, rot
from tools.dvc_doctor import Cache, dvc_problems, local_cache, read_outputs

STAGES = """stages:
  make:
    cmd: python make.py
    deps: [word.txt]
    outs: [made: {persist: true}, shown.txt: {persist: true}]
    metrics: [in_git.json: {cache: false, persist: true}]
"""
MAKE = f"""import sys; sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from repro.files import whole_file, whole_folder
word = Path("word.txt").read_text()
with whole_folder(Path("made", "0")) as folder:
    (folder / "word").write_text(word)
for name in ("shown.txt", "in_git.json"):
    with whole_file(Path(name)) as file:
        file.write_text(f'{{{{"{{name}}": "{{word}}"}}}}')
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stage that writes a folder and two files as ours do, with the repository's DVC configuration; it has run."""
    call(tmp_path, "dvc", "init", "--quiet", "--no-scm")
    with (tmp_path / ".dvc" / "config").open("a") as config:
        config.write((ROOT / ".dvc" / "config").read_text().replace("[core]", "").replace("analytics = false", ""))
    for name, text in {"dvc.yaml": STAGES, "make.py": MAKE, "word.txt": "first"}.items():
        (tmp_path / name).write_text(text)
    call(tmp_path, "dvc", "repro")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shared(copies: Cache) -> Iterator[tuple[Path, bool]]:
    """Every file of an output that DVC caches, and whether it is the cache's own file."""
    for output in read_outputs().values():
        for file, md5 in copies.files(output).items():
            if copies.place(md5).exists():
                yield file, file.samefile(copies.place(md5))


def test_the_cache_holds_no_second_copy(project: Path) -> None:
    assert dict(shared(local_cache())) == {Path("made/0/word"): True, Path("shown.txt"): True}
    assert Path("in_git.json").stat().st_nlink == 1


def test_what_was_cached_stays_when_the_stage_runs_again_under_dvc_or_by_hand(project: Path) -> None:
    for word in ("second", "third"):
        Path("word.txt").write_text(word)
        call(project, "dvc", "repro")
    Path("word.txt").write_text("by hand")
    call(project, "python", "make.py")
    cache = local_cache()
    assert not cache.rotten
    kept = {file.read_text() for file in cache.folder.glob("??/*")}
    assert {"first", "second", "third"} <= kept and "by hand" not in kept
    assert Path("made/0/word").read_text() == "by hand"
    call(project, "dvc", "checkout", "--force")
    assert Path("made/0/word").read_text() == "third"


def test_a_bit_that_flips_in_a_shared_file_is_named_with_commands_that_repair_it(project: Path) -> None:
    rot(Path("made/0/word"))
    problems = list(dvc_problems(set()))
    assert any(problem.startswith("made/0/word: modified since make wrote it") for problem in problems), problems
    for problem in problems:
        call(project, "sh", "-c", command_in(problem))
    assert Path("made/0/word").read_text() == "first"
    assert list(dvc_problems(set())) == []


@pytest.mark.timeout(1200)  # the first to ask for the small grid waits for it
def test_every_output_of_the_pipeline_is_shared_and_none_has_been_written_into(
    workspace: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace[0])
    copies = local_cache()
    found = {file: same for file, same in shared(copies) if file.parts[0] in ("settings", "data", "episodes", "models")}
    found |= {file: same for file, same in shared(copies) if file.is_relative_to(paths.ALL_RESULTS)}
    assert len(found) > 200 and [file for file, same in found.items() if not same] == []
    assert not copies.rotten
