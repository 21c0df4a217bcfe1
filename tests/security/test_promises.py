"""Every promise of SECURITY.md names tests, and they exist."""

import re

import pytest

from tests.paths import ROOT

TEXT = (ROOT / "SECURITY.md").read_text()
NAMED = sorted(set(re.findall(r"tests/[\w/]+\.py(?:::\w+)?", TEXT)))


@pytest.mark.parametrize("name", NAMED)
def test_a_named_test_exists(name: str) -> None:
    file, _, function = name.partition("::")
    assert f"def {function or 'test_'}" in (ROOT / file).read_text()


def test_every_kind_of_input_and_every_section_of_promises_names_its_tests() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and "trusted?" not in line]
    assert len(rows) >= 9 and all(".py" in row.rpartition(" | ")[2] for row in rows)
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE))
    assert all("tests/" in sections[title] for title in ("Network", "Secrets", "Audits"))
