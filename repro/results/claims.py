"""Claims as predicates over per-task records, each judged: holds, tied, fails, or cannot say.

A claim lists comparisons that must all hold; where the paper leaves a choice ("ratio 2 or 3"), it lists alternatives.
It fails as soon as every alternative has a comparison whose interval lies outside its bounds. Missing records or an
interval across a bound leave it open; a tie in any comparison makes the whole a tie.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from repro.results.contrasts import Comparison, Sampler, Verdict, measure
from repro.results.intervals import Mean
from repro.results.store import Reading

BEST_FIRST: tuple[Verdict, ...] = ("holds", "tied", "cannot say", "fails")


@dataclass(frozen=True)
class Place:
    """Where the paper says it: section, line of its source, and the tables or figures that show it."""

    section: str
    line: int
    shown_in: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """One claim: in our words, where the paper makes it, what would refute it, and what must be true of the records.

    `further` are the same comparisons with rows that the paper does not have, for the second verdict.
    """

    key: str
    statement: str
    place: Place
    refuted_by: str
    alternatives: tuple[tuple[Comparison, ...], ...]
    further: tuple[Comparison, ...] = ()

    def readings(self) -> Iterator[Reading]:
        """Every reading the claim needs; further rows are a bonus."""
        yield from (term.reading for group in self.alternatives for each in group for term in each.terms)

    def further_readings(self) -> Iterator[Reading]:
        """Every reading that the second verdict looks at besides."""
        yield from (term.reading for each in self.further for term in each.terms)


@dataclass(frozen=True)
class ComparisonOutcome:
    """A comparison with what was measured; None where records are missing."""

    comparison: Comparison
    found: Mean | None
    verdict: Verdict


@dataclass(frozen=True)
class Outcome:
    """A judged claim; `binding` is the comparison that decides it: the weakest of the best alternative.

    `against_all` is the verdict with the further rows that were measured, None where there are none; `stands_against`
    is the comparison that decides that one.
    """

    claim: Claim
    verdict: Verdict
    binding: ComparisonOutcome
    comparisons: tuple[ComparisonOutcome, ...]
    missing: tuple[str, ...]
    against_all: Verdict | None = None
    stands_against: ComparisonOutcome | None = None


def judge(claim: Claim, sample: Sampler) -> Outcome:
    """Judge one claim on the samples at hand."""
    groups = [_judge_all(group, sample, len(group), len(claim.alternatives)) for group in claim.alternatives]
    verdict, binding = min((_decide(group) for group in groups), key=lambda decided: BEST_FIRST.index(decided[0]))
    missing = sorted({reading.cell.name for reading in claim.readings() if sample(reading) is None})
    compared = tuple(outcome for group in groups for outcome in group)
    measured = tuple(each for each in claim.further if measure(each.terms, sample) is not None)
    if not measured:
        return Outcome(claim, verdict, binding, compared, tuple(missing))
    (paper_rows,) = groups  # keep their verdicts: what fails against these, fails against more
    further = _judge_all(measured, sample, len(paper_rows) + len(measured), 1)
    return Outcome(claim, verdict, binding, compared, tuple(missing), *_decide([*paper_rows, *further]))


def _judge_all(group: Sequence[Comparison], sample: Sampler, failing: int, holding: int) -> list[ComparisonOutcome]:
    found = [(comparison, measure(comparison.terms, sample)) for comparison in group]
    return [ComparisonOutcome(comparison, mean, comparison.judge(mean, failing, holding)) for comparison, mean in found]


def _decide(group: Sequence[ComparisonOutcome]) -> tuple[Verdict, ComparisonOutcome]:
    """The worst verdict of a group, and of those that have it the comparison farthest from holding."""
    worst = max((outcome.verdict for outcome in group), key=BEST_FIRST.index)
    return worst, min((outcome for outcome in group if outcome.verdict == worst), key=_clearance)


def _clearance(outcome: ComparisonOutcome) -> tuple[bool, float]:
    """How far inside its bounds the interval begins; what was not measured comes last."""
    found = outcome.found
    if found is None:
        return True, 0.0
    return False, outcome.comparison.clearance(found.mean) - (found.wide if found.error else 0.0)
