"""Dependencies are pinned with hashes, and installed only where the hashes agree."""

import base64
import json
import re

from tests.paths import ROOT


def requirements() -> list[str]:
    """The entries of the lock, each as one line."""
    text = (ROOT / "requirements.lock").read_text().replace("\\\n", " ")
    lines = [line.partition(" #")[0].strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def test_every_python_package_has_one_version_and_hashes() -> None:
    entries = requirements()
    assert len(entries) > 150
    for entry in entries:
        assert re.match(r"[A-Za-z0-9._-]+(\[[a-z,]+\])?==[^\s;]+( |$)", entry), entry[:80]
        assert re.findall(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry[:80]
        assert "://" not in entry and "-e " not in entry


def test_every_direct_dependency_is_in_the_lock() -> None:
    import tomllib

    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = [each for listed in content["project"]["optional-dependencies"].values() for each in listed]
    direct = [*content["project"]["dependencies"], *extras, *content["dependency-groups"]["test"]]
    names = {re.match(r"[\w.-]+", each)[0] for each in direct}  # type: ignore[index]
    locked = {re.match(r"[\w.-]+", each)[0] for each in requirements()}  # type: ignore[index]
    assert {canonical(name) for name in names} <= {canonical(name) for name in locked}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_set_up_asks_for_the_hashes() -> None:
    assert '"--require-hashes"' in (ROOT / "tools" / "_bootstrap.py").read_text()


def test_every_npm_package_has_a_digest_and_runs_no_script_when_installed() -> None:
    lock = json.loads((ROOT / "tools" / "tracking" / "package-lock.json").read_text())
    packages = {name: each for name, each in lock["packages"].items() if name and not each.get("inBundle")}
    assert len(packages) > 500
    for name, each in packages.items():
        kind, _, digest = each["integrity"].partition("-")
        assert kind in ("sha512", "sha1") and base64.b64decode(digest), name
    command = (ROOT / "tools" / "tracking" / "services.py").read_text()
    assert '"npm", "ci", "--ignore-scripts"' in command
