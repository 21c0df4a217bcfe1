"""A tool called in this process, which saves importing torch again."""

import runpy
import sys

import pytest

from tests.paths import ROOT


def call_tool(monkeypatch: pytest.MonkeyPatch, name: str, *words: object) -> object:
    """Run it as a user would; gives the exit code."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    monkeypatch.setattr(sys, "argv", [f"tools/{name}", *map(str, words)])
    monkeypatch.setattr("_bootstrap.ensure_environment", lambda: None)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "tools" / name), run_name="__main__")
    return ended.value.code or 0
