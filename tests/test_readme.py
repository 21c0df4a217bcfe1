"""The README names only tools, pictures and parameters that exist, and all documents only stages that DVC has."""

import re

import pytest
import yaml

from tests.paths import ROOT

README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"tools/[a-z_/]*[a-z](?:\.yaml|\.sbatch)?", README))))
def test_every_tool_that_is_named_exists(name: str) -> None:
    assert (ROOT / name).exists()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"!\[[^]]*\]\(([^)]+)\)", README))))
def test_every_picture_is_in_the_repository(path: str) -> None:
    assert (ROOT / path).is_file()


def test_every_experiment_command_names_known_parameters() -> None:
    params = (ROOT / "params.yaml").read_text()
    for name in re.findall(r"-S (\w+)=", README):
        assert re.search(rf"^{name}:", params, re.MULTILINE), name


def test_every_stage_that_is_named_for_dvc_exists() -> None:
    documents = [*ROOT.glob("*.md"), *(file for file in (ROOT / "tools").iterdir() if file.is_file())]
    named = {
        (found["file"] or "dvc.yaml", found["stage"])
        for document in documents
        for found in re.finditer(r"`dvc repro (?:(?P<file>[\w/]+\.yaml):)?(?P<stage>[a-z_]+)[@`]", document.read_text())
    }
    assert len(named) > 3
    for file, stage in named:
        assert stage in yaml.safe_load((ROOT / file).read_text())["stages"], f"{file}:{stage}"


def test_the_readme_is_read_in_a_few_minutes() -> None:
    assert len(README.splitlines()) < 200
    assert "tools/repro" in "\n".join(README.splitlines()[:12])
