"""Judged claims as they are printed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Literal

from repro.report.claim_words import describe, diagnose
from repro.report.facts import Methods
from repro.report.printed import Printed
from repro.report.tables import DASH, rounded, signed
from repro.results.claims import Claim, ComparisonOutcome, Outcome, Place, judge
from repro.results.contrasts import Verdict
from repro.results.intervals import Mean
from repro.results.paper_claims import Described
from repro.results.store import Results

VERDICTS: tuple[Verdict, ...] = ("holds", "tied", "fails", "cannot say")


@dataclass(frozen=True)
class ComparisonView:
    """One comparison as printed: the paper's effect, ours, and half the width of both intervals."""

    label: str
    verdict: Verdict
    published: str
    effect: str
    interval: str
    task_interval: str
    covers: str


@dataclass(frozen=True)
class ClaimView:
    """One claim as printed; its numbers are those of the comparison that decides it.

    `published` is the paper's effect where its own numbers bear the claim least, whatever ours are. `against_all` is
    the verdict with rows that the paper lacks, a dash where there are none; `cells` were read for it.
    """

    key: str
    statement: str
    section: str
    line: int
    shown_in: str
    refuted_by: str
    published: str
    verdict: Verdict | Literal["described"]
    against_all: str
    decided: ComparisonView
    cells: tuple[str, ...]
    missing: tuple[str, ...]
    diagnosis: str = ""
    comparisons: tuple[ComparisonView, ...] = ()
    decided_against_all: ComparisonView | None = None


def view_claims(
    claims: Sequence[Claim], described: Sequence[Described], results: Results, printed: Printed, methods: Methods
) -> list[ClaimView]:
    """Judge claims on the records at hand and round their numbers; described numbers follow."""
    return [
        *(_view(judge(claim, results.sample), results, printed, methods) for claim in claims),
        *(_describe(number, results, printed) for number in described),
    ]


def summary(claims: Sequence[ClaimView]) -> str:
    """One sentence: how many claims hold, are tied, fail, or stay open."""
    judged = [claim for claim in claims if claim.verdict != "described"]
    counts = Counter(claim.verdict for claim in judged)
    return (
        f"Of {len(judged)} claims {counts['holds']} hold, {counts['tied']} are tied, {counts['fails']} fail, "
        f"and {counts['cannot say']} cannot be judged."
    )


def coverage_notes(claims: Sequence[ClaimView]) -> dict[str, str]:
    """What intervals cover → a letter to mark it with, in order of appearance."""
    covers = dict.fromkeys(claim.decided.covers for claim in claims if claim.decided.covers)
    return dict(zip(covers, ascii_lowercase, strict=False))


def _view(outcome: Outcome, results: Results, printed: Printed, methods: Methods) -> ClaimView:
    claim, further = outcome.claim, outcome.stands_against

    def view(each: ComparisonOutcome) -> ComparisonView:
        effect, found = printed.effect(each.comparison, claim.place.shown_in), each.found
        shown = (signed(found.mean), *_intervals(found)) if found else (DASH, "", "", "")
        published = DASH if effect is None else signed(effect)
        return ComparisonView(describe(each.comparison, methods), each.verdict, published, *shown)

    read = (*claim.readings(), *(reading for reading in claim.further_readings() if results.has(reading.cell)))
    cells = dict.fromkeys(reading.cell.name for reading in read)
    return ClaimView(
        claim.key,
        claim.statement,
        *_placed(claim.place),
        claim.refuted_by,
        _published(claim, printed),
        outcome.verdict,
        outcome.against_all or DASH,
        view(outcome.binding),
        tuple(cell for cell in cells if cell not in outcome.missing),
        outcome.missing,
        diagnose(outcome, results.sample, methods),
        tuple(map(view, outcome.comparisons)),
        view(further) if further else None,
    )


def _published(claim: Claim, printed: Printed) -> str:
    """The printed effect that is nearest to refuting the claim, in the alternative that the paper bears out best."""
    groups = [
        [
            (each.clearance(effect), effect)
            for each in group
            if (effect := printed.effect(each, claim.place.shown_in)) is not None
        ]
        for group in claim.alternatives
    ]
    nearest = [min(group) for group in groups if group]
    return signed(max(nearest)[1]) if nearest else DASH


def _describe(number: Described, results: Results, printed: Printed) -> ClaimView:
    found, value = results.estimate(number.reading), printed.value(number.reading)
    published = DASH if value is None else rounded(value)
    shown = (rounded(found.mean), *_intervals(found)) if found else (DASH, "", "", "")
    decided = ComparisonView(number.statement, "cannot say", published, *shown)
    cell, place = (number.reading.cell.name,), _placed(number.place)
    cells, missing = (cell, ()) if found else ((), cell)
    return ClaimView(number.key, number.statement, *place, "", published, "described", DASH, decided, cells, missing)


def _placed(place: Place) -> tuple[str, int, str]:
    return place.section, place.line, ", ".join(place.shown_in) or "text"


def _intervals(found: Mean) -> tuple[str, str, str]:
    """The interval that verdicts use, the one over tasks, and what the first covers."""
    return rounded(found.wide) if found.error else "", rounded(found.ci), found.error.covers if found.error else ""
