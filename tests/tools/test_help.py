"""`--help` has one form in all tools, explains every option, and its examples can be typed."""

import contextlib
import io
import re
import shlex
import subprocess

import pytest

from tests.paths import ROOT
from tests.tools.calling import call_tool


def tools() -> list[str]:
    """Every tool that a user starts."""
    listed = subprocess.run(["git", "ls-files", "tools"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [ROOT / name for name in listed.stdout.splitlines() if name.count("/") == 1]
    return [file.name for file in files if file.is_file() and file.read_bytes().startswith(b"#!")]


def help_of(name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "120")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert call_tool(monkeypatch, name, "--help") == 0
    return said.getvalue()


@pytest.mark.parametrize("name", tools())
def test_help_has_one_form_and_explains_every_option(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = help_of(name, monkeypatch)
    assert said.startswith(f"usage: tools/{name}")
    usage = said.partition("\n\n")[0]
    explained = re.findall(r"^  (?:-h, )?(--[a-z-]+).*?(?:  |\n {10,})\S", said, re.MULTILINE)
    assert set(re.findall(r"\[(--[a-z-]+)", usage)) <= set(explained) | {"--help"}, said
    examples = re.findall(rf"^  (?:\S+=\S+ )?(tools/{name}\b.*)", said.partition("\nexamples:\n")[2], re.MULTILINE)
    assert examples
    for example in examples:
        options = [word.partition("=")[0] for word in shlex.split(example, comments=True) if word.startswith("--")]
        assert set(options) <= set(explained), example
