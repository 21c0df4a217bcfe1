"""Bundles: an edition travels with what its run made, and nothing else gets in."""

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import chdir
from hashlib import md5, sha256
from pathlib import Path

import pytest
from rocrate.rocrate import ROCrate

from repro import paths
from repro.editions.edition import EDITIONS, Edition
from repro.errors import BadInput
from repro.files import seal
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


def test_what_the_lock_says_of_a_stage_that_is_no_more_is_left_out(
    beside: Path, workspace: tuple[Path, list[str]], tmp_path: Path
) -> None:
    folder = tmp_path / NAME
    names = ("gone@mini", "train@gone")  # a stage that is no more, and one for a cell of another grid
    gone = "".join(f"  {name}:\n    outs:\n    - path: results/{name}\n      md5: a\n" for name in names)
    with chdir(workspace[0]):
        shutil.copytree(EDITIONS / NAME, folder)
        lock = folder / "dvc.lock"
        lock.write_text(lock.read_text().replace("stages:\n", f"stages:\n{gone}", 1))
        seal(folder)
        assert write_bundle(Edition(folder), tmp_path / "small.zip", models=False) > 20


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


def forged(change: Callable[[dict[str, bytes]], object]) -> Callable[[Path], None]:
    """A bundle with other contents, whose sums agree with them."""

    def forge(file: Path) -> None:
        with zipfile.ZipFile(file) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        change(members)
        for sums, top in (("edition/SHA256SUMS", "edition/"), ("SHA256SUMS", "")):
            names = [name for name in members if name.startswith(top) and name not in (sums, METADATA)]
            lines = [f"{sha256(members[name]).hexdigest()}  {name.removeprefix(top)}\n" for name in names]
            members[sums] = "".join(lines).encode()
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)

    return forge


def put(members: dict[str, bytes], content: bytes, suffix: str = "") -> str:
    """One more object of DVC's; gives its name."""
    name = md5(content, usedforsecurity=False).hexdigest()
    members[f"objects/{name[:2]}/{name[2:]}{suffix}"] = content
    return name + suffix


def with_list(path: object) -> Callable[[dict[str, bytes]], object]:
    """The list of a folder's files that names this path, which DVC would follow."""
    return lambda members: put(members, json.dumps([{"md5": put(members, b"evil"), "relpath": path}]).encode(), ".dir")


def replaced(name: str, old: str, new: str) -> Callable[[dict[str, bytes]], object]:
    return lambda members: members.update({name: members[name].replace(old.encode(), new.encode(), 1)})


FILES = f"      files: [{{relpath: ../../evil, md5: {32 * 'a'}}}]\n"  # what DVC would follow instead of the content
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
    "a device": (lambda file: (file.unlink(), file.symlink_to("/dev/zero")), "is no file"),
    "a folder's list that leads out": (forged(with_list("../../evil")), "it would write to '../../evil'"),
    "a folder's list that leads to a place": (forged(with_list("/tmp/evil")), "it would write to '/tmp/evil'"),
    "a folder's list of something else": (forged(with_list(3)), "it says .* of a file, expected md5, relpath alone"),
    "a folder's list that is none": (forged(lambda members: put(members, b"3", ".dir")), "is no list of a folder's"),
    "a folder's list that leads to git": (forged(with_list(".git/hooks/evil")), "write to '.git/hooks/evil'"),
    **{
        f"{word} of an output in {lock}": (forged(replaced(f"edition/{lock}", old, new)), said)
        for lock, path in {"dvc.lock": "data/mini", "evaluate.lock": "results/cells/mini-castle-1shot"}.items()
        for word, old, new, said in (
            ("a place", f"path: {path}", "path: ../evil", "write to '../evil'"),
            ("a place in git", f"path: {path}", "path: .git/evil", "write to '.git/evil'"),
            ("a content that leads out", "md5: ", "md5: ../../../../evil #", "has the content '../../../../evil'"),
            ("a content that is no text", "md5: ", "md5: [evil] #", "expected an MD5"),
            ("a list of files", f"path: {path}\n", f"path: {path}\n{FILES}", "of a file, expected"),
            ("two meanings", f"path: {path}\n", f"path: {path}\n      path: ../evil\n", "is no lock of DVC's"),
        )
    },
    "a file in the place of a folder": (
        forged(
            lambda members: (
                [members.pop(name) for name in [*members] if name.startswith("edition/figures/")],
                members.update({"edition/figures": b"evil"}),
            )
        ),
        "lacks edition/figures",
    ),
    "an output that leads out": (forged(replaced("edition/dvc.lock", "path: data/mini", "path: ../evil")), "write to"),
    "no lock": (forged(lambda members: members.update({"edition/dvc.lock": b"["})), "is no lock of DVC's"),
    "no parameters": (forged(lambda members: members.pop("edition/params.yaml")), "lacks edition/params.yaml"),
    "no records": (forged(lambda members: members.pop("edition/records.json.gz")), "lacks edition/records.json.gz"),
    "a dataset that leads out": (
        forged(replaced("edition/params.yaml", "  mini:", "  ../../evil:")),
        "expected: up to",
    ),
    "a cell that is a command": (
        forged(replaced("edition/grid.yaml", "  mini-castle-1shot:", "  $(touch evil):")),
        "expected: up to 100 letters",
    ),
    "an edition that is no JSON": (forged(lambda members: members.update({"edition/edition.json": b"["})), "not JSON"),
}


def test_damaged_and_foreign_bundles_are_refused_and_change_nothing(
    bundle: Callable[[bool], Path], elsewhere: Path, workspace: tuple[Path, list[str]]
) -> None:
    with chdir(workspace[0]):
        sound = bundle(False).read_bytes()
    file = elsewhere.parent / "other.zip"
    for damage, said in DAMAGES.values():
        file.unlink(missing_ok=True)
        file.write_bytes(sound)
        damage(file)
        with pytest.raises(BadInput, match=said):
            restore(file)
    file.unlink()
    file.write_bytes(sound)
    params = elsewhere / "params.yaml"
    params.write_text(params.read_text() + "# mine\n")
    with pytest.raises(BadInput, match="params.yaml has edits that are in no commit"):
        restore(file)
    assert call(elsewhere, "git", "status", "--porcelain").stdout == " M params.yaml\n"
    call(elsewhere, "git", "checkout", "--quiet", "params.yaml")
    mine = elsewhere / EDITIONS / NAME / "mine"
    mine.parent.mkdir(parents=True)
    mine.touch()
    with pytest.raises(BadInput, match=f"{EDITIONS / NAME}/ has edits that are in no commit"):
        restore(file)
    assert mine.exists()
    (elsewhere / ".git").rename(elsewhere / "git")
    with pytest.raises(BadInput, match="git cannot say what would be lost .*, expected a clone"):
        restore(file)
    assert not (elsewhere / ".dvc" / "cache").exists() and not list(elsewhere.parent.rglob("evil"))


def test_any_remote_of_dvc_carries_a_run_to_another_clone(
    workspace: tuple[Path, list[str]], tmp_path: Path, elsewhere: Path
) -> None:
    for folder in (workspace[0], elsewhere):
        call(folder, "dvc", "remote", "add", "--local", "--force", "--default", "shelf", str(tmp_path / "shelf"))
    call(workspace[0], "dvc", "push")
    (elsewhere / "results" / "experiment").mkdir(parents=True)
    rendered = [file.relative_to(workspace[0]) for file in (workspace[0] / "paper").rglob("*") if file.is_file()]
    for name in (paths.LOCK, paths.EVALUATIONS_LOCK, "results/experiment/metrics.json", *rendered):  # what git carries
        (elsewhere / name).write_bytes((workspace[0] / name).read_bytes())
    call(elsewhere, "dvc", "pull")
    assert executed(call(elsewhere, "dvc", "repro")) == []
    call(workspace[0], "dvc", "remote", "remove", "--local", "shelf")
