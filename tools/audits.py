"""What pip-audit and npm audit found, told apart from what they could not check; pip-audit calls that clean."""

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.errors import BadInput, one_line

PIP_AUDIT = "pip-audit==2.10.1"
SEVERITIES = ("critical", "high", "moderate", "low", "info")


@dataclass(frozen=True)
class Audit:
    """How many packages were checked, what is known of them (a line each), and why others were not checked."""

    name: str
    checked: int
    findings: tuple[str, ...]
    unchecked: str = ""

    def __str__(self) -> str:
        """One line, then the findings."""
        words = f"{self.name}: {self.checked} packages checked, {len(self.findings)} known vulnerabilities"
        return "\n  ".join([f"{words}; NOT CHECKED: {self.unchecked}" if self.unchecked else words, *self.findings])


def audit_python(lock: Path) -> Audit:
    """Check every pin of a lock file; pip-audit itself is installed for this one call, apart from the environment."""
    import venv

    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        _call([f"{folder}/bin/python", "-m", "pip", "install", "--quiet", PIP_AUDIT], Path())
        command = [f"{folder}/bin/pip-audit", "--requirement", str(lock), "--require-hashes", "--disable-pip"]
        return read_pip_audit(_call([*command, "--format", "json", "--progress-spinner", "off"], Path(), codes=(0, 1)))


def audit_npm(folder: Path) -> Audit:
    """Check the packages of a package-lock.json."""
    return read_npm_audit(_call(["npm", "audit", "--omit=dev", "--json"], folder, codes=(0, 1)))


def read_pip_audit(output: str) -> Audit:
    """pip-audit ends well where it skipped every package; here those are counted."""
    packages = _json(output, "pip-audit").get("dependencies", [])
    skipped = [package for package in packages if "skip_reason" in package]
    findings = tuple(
        f"{package['name']} {package['version']}: {one['id']}, mended in {', '.join(one['fix_versions']) or 'none'}"
        for package in packages
        for one in package.get("vulns", ())
    )
    reason = f"{len(skipped)} packages ({one_line(skipped[0]['skip_reason'])})" if skipped else ""
    return Audit("pip-audit", len(packages) - len(skipped), findings, reason)


def read_npm_audit(output: str) -> Audit:
    """npm audit gives an error as JSON too."""
    facts = _json(output, "npm audit")
    if "metadata" not in facts:
        return Audit("npm audit", 0, (), one_line(facts.get("message") or facts))
    ranked = sorted(facts["vulnerabilities"].values(), key=lambda one: SEVERITIES.index(one["severity"]))
    findings = tuple(f"{one['name']} {one['range']}: {one['severity']}" for one in ranked)
    return Audit("npm audit", facts["metadata"]["dependencies"]["total"], findings)


def _json(output: str, name: str) -> dict[str, Any]:
    try:
        return dict(json.loads(output))
    except (ValueError, TypeError) as error:
        found = one_line(output)[:200] or "nothing"
        raise BadInput(f"{name} printed {found!r}, expected JSON; run it by hand to see why") from error


def _call(command: Sequence[str], folder: Path, codes: tuple[int, ...] = (0,)) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BadInput(f"{command[0]} cannot be run ({error.strerror}); install it first") from error
    if done.returncode not in codes:
        reason = one_line(done.stderr)[-300:]
        raise BadInput(f"{Path(command[0]).name} failed: {reason}; see whether the network is there")
    return done.stdout
