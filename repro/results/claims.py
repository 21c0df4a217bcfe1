"""Claims as predicates over per-task records, each judged: holds, fails, or cannot say.

A claim lists comparisons that must all hold; where the paper leaves a choice ("ratio 2 or 3"), it lists
alternatives. It fails as soon as every alternative has a comparison whose interval lies outside its bounds; missing
records or an interval across a bound leave it open.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from repro.results.contrasts import Comparison, Contrast, measure
from repro.results.store import Reading, Sample

Verdict = Literal["holds", "fails", "cannot say"]


@dataclass(frozen=True)
class Claim:
    """One claim: where the paper makes it, in our words, and what must be true of the records."""

    key: str
    statement: str
    shown_in: str
    alternatives: tuple[tuple[Comparison, ...], ...]

    def readings(self) -> Iterator[Reading]:
        """Every reading the claim needs."""
        for comparison in (each for group in self.alternatives for each in group):
            for term in comparison.terms:
                yield term.reading


@dataclass(frozen=True)
class ComparisonOutcome:
    """A comparison with what was measured; None where records are missing."""

    comparison: Comparison
    contrast: Contrast | None
    verdict: Verdict

    @property
    def p_value(self) -> float:
        """Small where the comparison holds clearly; 1 where nothing was measured."""
        return self.contrast.p_value(self.comparison.low, self.comparison.high) if self.contrast else 1.0


@dataclass(frozen=True)
class Outcome:
    """A judged claim; `binding` is the comparison that decides it: the weakest of the best alternative."""

    claim: Claim
    verdict: Verdict
    binding: ComparisonOutcome
    comparisons: tuple[ComparisonOutcome, ...]
    missing: tuple[str, ...]


def judge(claim: Claim, sample: Callable[[Reading], Sample | None]) -> Outcome:
    """Judge one claim on the samples at hand."""
    judged = [_judge_all(group, sample) for group in claim.alternatives]
    verdicts = [_verdict_of_all(group) for group in judged]
    best = min(verdicts, key=("holds", "cannot say", "fails").index)
    group = judged[verdicts.index(best)]
    deciding = [outcome for outcome in group if outcome.verdict == best]
    missing = sorted({reading.cell.name for reading in claim.readings() if sample(reading) is None})
    everything = tuple(outcome for each in judged for outcome in each)
    return Outcome(claim, best, max(deciding, key=_weakness), everything, tuple(missing))


def _judge_all(group: tuple[Comparison, ...], sample: Callable[[Reading], Sample | None]) -> list[ComparisonOutcome]:
    outcomes = []
    for comparison in group:
        contrast = measure(comparison.terms, sample)
        verdict: Verdict = "cannot say"
        if contrast and contrast.holds(comparison.low, comparison.high):
            verdict = "holds"
        elif contrast and contrast.fails(comparison.low, comparison.high, len(group)):
            verdict = "fails"
        outcomes.append(ComparisonOutcome(comparison, contrast, verdict))
    return outcomes


def _verdict_of_all(group: list[ComparisonOutcome]) -> Verdict:
    verdicts = {outcome.verdict for outcome in group}
    return "fails" if "fails" in verdicts else "cannot say" if "cannot say" in verdicts else "holds"


def _weakness(outcome: ComparisonOutcome) -> tuple[bool, float, float]:
    """A measured comparison before a missing one, then the one farthest from holding."""
    if outcome.contrast is None:
        return False, 0.0, 0.0
    low, high = outcome.comparison.low, outcome.comparison.high
    return True, outcome.p_value, -min(outcome.contrast.effect - low, high - outcome.contrast.effect)
