"""The installed project: the console command leads to the tools, and every description says the same of it."""

import json
import subprocess
import sys
import tomllib

import yaml

from tests.paths import ROOT
from tools import castle

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """What the installed command `castle` does."""
    command = [sys.executable, "-c", "from tools.castle import main; main()", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_every_tool_is_listed_with_its_purpose_and_can_be_called() -> None:
    listed = run().stdout
    assert all(f"  {name} " in listed for name in castle.tools()) and {"repro", "test", "status"} <= set(castle.tools())
    assert run("scale", "--help").stdout.startswith("usage: tools/scale")


def test_an_unknown_tool_is_answered_in_one_sentence() -> None:
    wrong = run("train")
    assert wrong.returncode == 1 and wrong.stderr.startswith("error: got 'train', expected one of audit, ")
    assert len(wrong.stderr.splitlines()) == 1


def test_the_command_is_declared_and_every_tool_is_checked_by_ruff_and_mypy() -> None:
    assert PROJECT["project"]["scripts"] == {"castle": f"{castle.__name__}:main"}
    for name in castle.tools():
        assert f"tools/{name}" in PROJECT["tool"]["ruff"]["extend-include"], name


def test_name_version_licence_and_article_are_the_same_everywhere() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    meta = json.loads((ROOT / "codemeta.json").read_text())
    project, article = PROJECT["project"], citation["references"][0]
    assert citation["title"] == meta["name"] == project["name"]
    assert citation["version"] == meta["version"] == project["version"]
    assert meta["description"] == project["description"]
    assert (citation["license"], meta["license"].rpartition("/")[2]) == (project["license"], project["license"])
    assert meta["referencePublication"]["name"] == article["title"]
    assert meta["referencePublication"]["identifier"].endswith(article["doi"])
    assert (ROOT / meta["continuousIntegration"]).is_file()


def test_the_workflow_runs_the_two_commands_and_a_real_mongo() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yaml").read_text())["jobs"]
    commands = {step["run"] for job in jobs.values() for step in job["steps"] if "run" in step}
    assert {"tools/test", "tools/repro"} <= commands
    assert jobs["mongo"]["services"]["mongo"]["image"] == "mongo:7"
    assert "TEST_MONGO_URL" in (ROOT / "tests" / "tracking" / "conftest.py").read_text()
