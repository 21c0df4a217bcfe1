"""DVC's cache and the workspace share files (.dvc/config): what a stage writes replaces them and changes none."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.pipeline.workspace import call
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


def unshared(copies: Cache) -> Iterator[Path]:
    """The files of outputs whose copy in the cache is no file of the workspace.

    One of several files with the same content is enough: DVC leaves the others as they are.
    """
    for output in read_outputs().values():
        for file, md5 in copies.files(output).items():
            if copies.place(md5).exists() and copies.place(md5).stat().st_nlink == 1:
                yield file


def test_the_cache_holds_no_second_copy(project: Path) -> None:
    cache = local_cache()
    assert len([file for file in cache.folder.glob("??/*") if file.suffix != ".dir"]) == 2
    assert list(unshared(cache)) == []
    assert Path("in_git.json").stat().st_nlink == 1


def test_what_was_cached_stays_when_the_stage_runs_again_under_dvc_or_by_hand(project: Path) -> None:
    for word in ("second", "third"):
        Path("word.txt").write_text(word)
        call(project, "dvc", "repro")
    Path("word.txt").write_text("by hand")
    call(project, "python", "make.py")
    cache = local_cache()
    assert not cache.damaged
    kept = {file.read_text() for file in cache.folder.glob("??/*")}
    assert {"first", "second", "third"} <= kept and "by hand" not in kept
    assert Path("made/0/word").read_text() == "by hand"
    call(project, "dvc", "checkout", "--force")
    assert Path("made/0/word").read_text() == "third"


def test_what_a_stage_leaves_as_it_was_is_its_own_until_dvc_is_asked_to_share_it(project: Path) -> None:
    call(project, "dvc", "repro", "--force")
    assert list(unshared(local_cache())) == [Path("made/0/word")]  # a file alone is shared again by itself
    call(project, "dvc", "checkout", "--relink")
    assert list(unshared(local_cache())) == []


def test_a_bit_that_flips_in_a_shared_file_is_named_with_commands_that_repair_it(project: Path) -> None:
    rot(Path("made/0/word"))
    problems = list(dvc_problems(set()))
    assert any(problem.startswith("made/0/word: modified since make wrote it") for problem in problems), problems
    for problem in problems:
        call(project, "sh", "-c", command_in(problem))
    assert Path("made/0/word").read_text() == "first"
    assert list(dvc_problems(set())) == []


@pytest.mark.timeout(1200)  # the first to ask for the small grid waits for it
def test_the_datasets_of_the_pipeline_are_shared_and_no_output_was_written_into(
    workspace: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace[0])
    copies = local_cache()
    assert [file for file in unshared(copies) if file.is_relative_to("data")] == []  # no test runs these stages again
    assert not copies.damaged
