"""Bundles: an edition travels with what its run made, and nothing else gets in."""

import zipfile
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from rocrate.rocrate import ROCrate

from repro import paths
from repro.editions.edition import EDITIONS, Edition
from repro.errors import BadInput
from tests.editions.conftest import NAME
from tests.pipeline.workspace import call, executed, make_workspace
from tools.editions.bundling import METADATA, write_bundle
from tools.editions.restoring import restore

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture
def bundle(beside: Path, tmp_path: Path) -> Callable[[bool], Path]:
    def write(models: bool) -> Path:
        file = tmp_path / "small.zip"
        assert write_bundle(Edition(EDITIONS / NAME), file, models=models) > 20
        return file

    return write


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """Another clone."""
    clone = make_workspace(tmp_path / "elsewhere")
    with chdir(clone):
        yield clone


def test_a_bundle_with_models_lets_another_clone_run_nothing(
    bundle: Callable[[bool], Path], elsewhere: Path, workspace: tuple[Path, list[str]], tmp_path: Path
) -> None:
    with chdir(workspace[0]):
        file = bundle(True)
    crate = ROCrate(_unpacked(file, tmp_path))
    assert crate.name == "Edition small" and len(crate.data_entities) == len(zipfile.ZipFile(file).namelist()) - 1
    restore(file)
    assert executed(call(elsewhere, "dvc", "repro")) == []
    (elsewhere / "paper" / "tables.tex").unlink()
    assert executed(call(elsewhere, "dvc", "repro", "paper")) == ["paper"]
    assert (elsewhere / "paper" / "tables.tex").read_bytes() == (workspace[0] / "paper" / "tables.tex").read_bytes()


def _unpacked(file: Path, tmp_path: Path) -> Path:
    zipfile.ZipFile(file).extractall(tmp_path / "crate")
    return tmp_path / "crate"


def test_without_models_what_is_there_is_up_to_date_and_the_paper_is_rebuilt(
    bundle: Callable[[bool], Path], elsewhere: Path, workspace: tuple[Path, list[str]]
) -> None:
    with chdir(workspace[0]):
        file = bundle(False)
    restore(file)
    assert not [path for path in (elsewhere / "models").rglob("*") if path.is_file()]
    assert executed(call(elsewhere, "dvc", "repro", "--allow-missing")) == []
    (elsewhere / "paper" / "tables.tex").unlink()
    call(elsewhere, "dvc", "repro", "--single-item", "--force", "paper")
    assert (elsewhere / "paper" / "tables.tex").read_bytes() == (workspace[0] / "paper" / "tables.tex").read_bytes()


def rewritten(file: Path, change: Callable[[str, bytes], tuple[str, bytes] | None], *more: tuple[str, bytes]) -> None:
    with zipfile.ZipFile(file) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(file, "w") as archive:
        for member in (*filter(None, (change(*each) for each in members)), *more):
            archive.writestr(*member)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "half of it": (lambda file: file.write_bytes(file.read_bytes()[:-5000]), "cannot be read whole"),
    "no archive": (lambda file: file.write_text("hello"), "cannot be read whole"),
    "a path that leads out": (
        lambda file: rewritten(file, lambda *member: member, ("../../evil", b"")),
        "holds '../../evil', expected a bundle",
    ),
    "an absolute path": (lambda file: rewritten(file, lambda *member: member, ("/tmp/evil", b"")), "holds '/tmp/evil'"),
    "another content": (
        lambda file: rewritten(file, lambda name, data: (name, data + b" " * name.endswith("tables.tex"))),
        "edition/tables.tex is not what was put into it",
    ),
    "a foreign archive": (
        lambda file: rewritten(file, lambda name, data: (name, data) if name == METADATA else None),
        "lacks ro-crate-metadata.json, SHA256SUMS or an edition",
    ),
}


def test_damaged_and_foreign_bundles_are_refused_and_change_nothing(
    bundle: Callable[[bool], Path], elsewhere: Path, workspace: tuple[Path, list[str]]
) -> None:
    with chdir(workspace[0]):
        sound = bundle(False).read_bytes()
    file = elsewhere.parent / "other.zip"
    for damage, said in DAMAGES.values():
        file.write_bytes(sound)
        damage(file)
        with pytest.raises(BadInput, match=said):
            restore(file)
    file.write_bytes(sound)
    params = elsewhere / "params.yaml"
    params.write_text(params.read_text() + "# mine\n")
    with pytest.raises(BadInput, match="params.yaml has edits that are in no commit"):
        restore(file)
    assert call(elsewhere, "git", "status", "--porcelain").stdout == " M params.yaml\n"
    assert not (elsewhere / ".dvc" / "cache").exists() and not list(elsewhere.parent.glob("evil"))


def test_any_remote_of_dvc_carries_a_run_to_another_clone(
    workspace: tuple[Path, list[str]], tmp_path: Path, elsewhere: Path
) -> None:
    for folder in (workspace[0], elsewhere):
        call(folder, "dvc", "remote", "add", "--local", "--force", "--default", "shelf", str(tmp_path / "shelf"))
    call(workspace[0], "dvc", "push")
    (elsewhere / "results" / "experiment").mkdir(parents=True)
    rendered = [file.relative_to(workspace[0]) for file in (workspace[0] / "paper").glob("*.*")]
    for name in (paths.LOCK, paths.EVALUATIONS_LOCK, "results/experiment/metrics.json", *rendered):  # what git carries
        (elsewhere / name).write_bytes((workspace[0] / name).read_bytes())
    call(elsewhere, "dvc", "pull")
    assert set(executed(call(elsewhere, "dvc", "repro"))) <= {"paper"}
    call(workspace[0], "dvc", "remote", "remove", "--local", "shelf")
