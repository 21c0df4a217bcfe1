"""tools/audit: what was found, and what was not checked, from the two auditors' own words."""

import json
import sys

import pytest

from repro.errors import BadInput
from tests.paths import ROOT

sys.path.insert(0, str(ROOT / "tools"))

from tools.audits import read_npm_audit, read_pip_audit  # noqa: E402

SOUND = {"name": "a", "version": "1", "vulns": []}
WEAK = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1"]}]}
SKIPPED = {"name": "c", "skip_reason": "Dependency not found: c (3)"}


def test_a_package_that_was_skipped_is_not_called_sound() -> None:
    found = read_pip_audit(json.dumps({"dependencies": [SOUND, SKIPPED]}))
    assert (found.checked, found.findings) == (1, ())
    assert "NOT CHECKED: 1 packages (Dependency not found: c (3))" in str(found)


def test_python_findings_name_package_version_and_mend() -> None:
    found = read_pip_audit(json.dumps({"dependencies": [SOUND, WEAK]}))
    assert (found.checked, found.unchecked) == (2, "")
    assert str(found).endswith("1 known vulnerabilities\n  b 2: PYSEC-1, mended in 2.1")


def test_npm_findings_come_with_the_worst_first() -> None:
    weak = {name: {"name": name, "severity": level, "range": "<1"} for name, level in (("x", "low"), ("y", "critical"))}
    found = read_npm_audit(json.dumps({"vulnerabilities": weak, "metadata": {"dependencies": {"total": 7}}}))
    assert (found.checked, found.unchecked) == (7, "")
    assert found.findings == ("y <1: critical", "x <1: low")


def test_an_error_of_npm_is_not_called_sound() -> None:
    found = read_npm_audit(json.dumps({"message": "405 Method Not Allowed", "error": {"summary": ""}}))
    assert str(found).endswith("0 packages checked, 0 known vulnerabilities; NOT CHECKED: 405 Method Not Allowed")


@pytest.mark.parametrize("said", ["", "oops", "[1]"])
def test_no_json_is_quoted(said: str) -> None:
    with pytest.raises(BadInput, match="expected JSON"):
        read_npm_audit(said)
