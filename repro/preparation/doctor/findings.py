"""What the doctor says: rows with a verdict. Fail stops work, warn is worth knowing."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["pass", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """One row of the doctor's table."""

    check: str
    seen: str
    expected: str
    verdict: Verdict


@dataclass(frozen=True)
class Report:
    """All findings, and the images per class and role where the layout could be read."""

    findings: list[Finding]
    counts: dict[str, dict[str, int]]

    @property
    def passed(self) -> bool:
        """True where nothing failed."""
        return all(finding.verdict != "fail" for finding in self.findings)
