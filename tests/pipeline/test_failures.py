"""A stage that fails takes nothing away, and no name of the user's is run or followed, however DVC is started."""

import shutil
from pathlib import Path

import pytest
import yaml

from tests.counting import Count
from tests.pipeline.workspace import call, digests, make_workspace

pytestmark = pytest.mark.timeout(1200)
COMMAND, FOLLOWED = "$(touch ran)", "../../outer"


def test_a_failing_paper_leaves_the_one_that_was_there(
    workspace: tuple[Path, list[str]], tmp_path: Path, faults: Count
) -> None:
    faults.tried()
    folder = tmp_path / "copy"
    shutil.copytree(workspace[0], folder, symlinks=True)
    page = folder / "paper" / "templates" / "report.html"  # rendered last, when all else is there
    page.write_text("{{ nothing.at.all }}")
    before = digests(folder, ("paper",))
    done = call(folder, "dvc", "repro", "-s", "paper", check=False)
    assert done.returncode != 0 and "a template cannot be filled" in done.stderr, done.stderr
    assert digests(folder, ("paper",)) == before and "paper/report.html" in before
    faults.survived()


def test_a_fresh_clone_keeps_its_paper_where_the_stage_cannot_run(
    workspace: tuple[Path, list[str]], tmp_path: Path, faults: Count
) -> None:
    faults.tried()
    call(tmp_path, "git", "clone", "--quiet", str(workspace[0]), "clone")
    done = call(tmp_path / "clone", "dvc", "repro", "-s", "paper", check=False)
    assert done.returncode != 0
    assert call(tmp_path / "clone", "git", "status", "--porcelain").stdout == ""
    faults.survived()


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a dataset that is named like a command, whose settings somebody has planted."""
    place = tmp_path_factory.mktemp("named")
    (place / "outer").mkdir()
    (place / "outer" / "kept").touch()
    (place / "in").mkdir()
    folder = make_workspace(place / "in")
    planted = folder / "settings" / "splits" / f"{COMMAND}.json"
    planted.parent.mkdir(parents=True)
    planted.write_text('{"seeds": [0]}')
    return folder


@pytest.mark.parametrize("name", [COMMAND, FOLLOWED])
@pytest.mark.parametrize("start", ["repro", "repro --ignore-errors -s splits@NAME", "exp run"])
def test_no_name_is_run_or_followed(name: str, start: str, named: Path, faults: Count) -> None:
    faults.tried()
    params = yaml.safe_load(call(named, "git", "show", "HEAD:params.yaml").stdout)
    params["datasets"] = {"mini": params["datasets"]["mini"], name: params["datasets"]["mini"]}
    (named / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    words = [word.replace("NAME", name) for word in start.split()]
    done = call(named, "dvc", *words, check=False)
    assert not list(named.rglob("ran")) and not (named / "data" / COMMAND).exists(), done.stdout
    assert [file.name for file in (named.parent / "outer").iterdir()] == ["kept"]
    faults.survived()
