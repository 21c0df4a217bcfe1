"""A small workspace in which every stage has run, copied for each input; and the judge of its answer."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.bad_inputs.asking import Damage, ask, contents
from tests.conftest import note_origin, write_tiny_dataset
from tests.paths import ROOT
from tests.pipeline.small_params import small_grid, small_params

COMMANDS = "stages plan && stages episodes mini && stages pretrain mini-standard && stages evaluate mini-mc_knn-1shot"


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One dataset of noise, its tasks, a backbone after one epoch, and one method measured."""
    folder = tmp_path_factory.mktemp("sound")
    params, grid = small_params(), small_grid()
    params["datasets"] = {"mini": params["datasets"]["mini"]}
    for group in ("trained", "untrained", "adapted"):
        grid[group] = {name: line for name, line in grid[group].items() if line["dataset"] == "mini"}
    shutil.copytree(ROOT / "paper", folder / "paper", ignore=shutil.ignore_patterns("*.png", "*.pdf"))
    (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    (folder / "paper" / "grid.yaml").write_text(yaml.safe_dump(grid, sort_keys=False))
    for name in ("repro", "stages"):  # what `plan` hashes
        (folder / name).symlink_to(ROOT / name)
    write_tiny_dataset(folder / "data" / "mini" / "0", size=16)
    note_origin(folder / "data" / "mini" / "0")
    answer = ask(folder, COMMANDS)
    assert answer.code == 0, answer.said
    return folder


@pytest.fixture
def workspace(sound: Path, tmp_path: Path) -> Path:
    """A copy of it to spoil."""
    shutil.copytree(sound, tmp_path / "workspace", symlinks=True, ignore=shutil.ignore_patterns("_sources"))
    return tmp_path / "workspace"


@pytest.fixture
def judge(workspace: Path, bad_inputs) -> Callable[..., None]:
    """Spoil, ask, and require one sentence, a telling exit code, and a workspace left as it was."""

    def judge_row(damage: Damage, command: str, expected: str) -> None:
        damage(workspace)
        before = contents(workspace)
        bad_inputs.tried()
        ask(workspace, command).require(expected)
        assert contents(workspace) == before
        bad_inputs.answered()

    return judge_row
