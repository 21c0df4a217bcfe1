"""A workspace for each fault test, in which everything has run."""

from pathlib import Path

import pytest

from tests.faults.scene import Scene, copy_workspace


@pytest.fixture
def scene(workspace: tuple[Path, list[str]], tmp_path: Path) -> Scene:
    """A copy of the small pipeline's workspace, undisturbed."""
    return Scene(copy_workspace(workspace[0], tmp_path / "copy"))
