"""Judged claims as they are printed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from repro.report.tables import DASH, rounded, signed
from repro.results.claims import Claim, ComparisonOutcome, Outcome, Verdict, judge
from repro.results.store import Results

SMALLEST_P = 0.001


@dataclass(frozen=True)
class ComparisonView:
    """One comparison as printed."""

    label: str
    verdict: Verdict
    effect: str
    interval: str
    p_value: str
    tasks: str
    paired: str


@dataclass(frozen=True)
class ClaimView:
    """One claim as printed; its numbers are those of the comparison that decides it."""

    key: str
    statement: str
    shown_in: str
    verdict: Verdict
    effect: str
    interval: str
    p_value: str
    decided_by: str
    comparisons: tuple[ComparisonView, ...]
    missing: tuple[str, ...]


def view_claims(claims: Sequence[Claim], results: Results) -> list[ClaimView]:
    """Judge claims on the records at hand and round their numbers."""
    return [_view(judge(claim, results.sample)) for claim in claims]


def summary(claims: Sequence[ClaimView]) -> str:
    """One sentence: how many claims hold, fail, or stay open."""
    counts = Counter(claim.verdict for claim in claims)
    return (
        f"Of {len(claims)} claims {counts['holds']} hold, {counts['fails']} fail, "
        f"and {counts['cannot say']} cannot be judged."
    )


def _view(outcome: Outcome) -> ClaimView:
    claim, binding = outcome.claim, _view_comparison(outcome.binding)
    return ClaimView(
        claim.key,
        claim.statement,
        claim.shown_in,
        outcome.verdict,
        binding.effect,
        binding.interval,
        binding.p_value,
        binding.label,
        tuple(map(_view_comparison, outcome.comparisons)),
        outcome.missing,
    )


def _view_comparison(outcome: ComparisonOutcome) -> ComparisonView:
    contrast, label = outcome.contrast, outcome.comparison.label
    if contrast is None:
        return ComparisonView(label, outcome.verdict, DASH, "", DASH, DASH, DASH)
    p_value = outcome.p_value
    return ComparisonView(
        label,
        outcome.verdict,
        signed(contrast.effect),
        rounded(contrast.interval()),
        f"<{SMALLEST_P:g}" if p_value < SMALLEST_P else f"{p_value:.3f}",
        str(contrast.tasks),
        "paired" if contrast.paired else "independent",
    )
