"""Comparisons in words, methods by their labels, and one line that says why a claim fails."""

import re
from dataclasses import replace

import numpy as np

from repro.report.facts import Methods
from repro.report.measures import MEASURE_LABELS
from repro.report.tables import rounded, signed
from repro.results.claims import ComparisonOutcome, Outcome
from repro.results.contrasts import Comparison, Sampler, Term, measure
from repro.results.intervals import Mean
from repro.results.store import Reading

WORDS = MEASURE_LABELS | {
    "cal_hm": "calibrated HM",
    "acc": "mean accuracy",
    "syn_s": "synthesised",
    "proto_s": "prototypes",
    "many_s": "many-shot",
    "conf_ratio": "confidence ratio",
}
_CALIBRATED = {"hm": "cal_hm", "u_su": "cal_u_su", "s_su": "cal_s_su", "acc": "cal_acc"}


def calibrated(reading: Reading) -> Reading | None:
    """The same after calibration, where that is another measure."""
    if reading.measure not in _CALIBRATED:
        return None
    return replace(reading, measure=_CALIBRATED[reading.measure])


def describe(comparison: Comparison, methods: Methods) -> str:
    """What is compared, with what both sides share said once."""
    sides = [_facets(term.reading, methods) for term in comparison.terms]
    if len(sides) > 2:
        return _with_labels(comparison, methods)
    first, last = sides[0], sides[-1]
    shared = [one for one, other in zip(first, last, strict=True) if one == other and one]
    if len(sides) == 1:
        return ", ".join(shared)
    one, other = (" ".join(word for word in side if word and word not in shared) for side in (first, last))
    return ", ".join([f"{one} − {other}", *shared])


def _facets(reading: Reading, methods: Methods) -> tuple[str, ...]:
    cell = reading.cell
    ways = "" if reading.way == "any" else f"{reading.way} ways"
    return methods.named(cell), WORDS.get(reading.measure, reading.measure), cell.dataset, f"{cell.shot}-shot", ways


def _with_labels(comparison: Comparison, methods: Methods) -> str:
    """Its own label with cells named as tables name them."""
    cells = {term.reading.cell.name: term.reading.cell for term in comparison.terms}
    words = {name: f"{methods.named(cell)} ({cell.dataset}, {cell.shot}-shot)" for name, cell in cells.items()}
    longest_first = sorted(map(re.escape, words), key=len, reverse=True)
    return re.sub("|".join(longest_first), lambda found: words[found.group()], comparison.label)


def diagnose(outcome: Outcome, sample: Sampler, methods: Methods) -> str:
    """Which comparison makes a claim fail and how clearly; empty where it does not fail, on the paper's or all rows."""
    lines = []
    if outcome.verdict == "fails":
        lines.append(_line(outcome.binding, sample, methods))
        failed = sum(each.verdict == "fails" for each in outcome.comparisons)
        if len(outcome.comparisons) > 1:
            lines[0] += f"; so in {failed} of {len(outcome.comparisons)} comparisons"
    further = outcome.stands_against
    if further and further.verdict == "fails" and further.comparison in outcome.claim.further:
        lines.append(f"against all rows: {_line(further, sample, methods)}")
    return "; ".join(lines)


def _line(outcome: ComparisonOutcome, sample: Sampler, methods: Methods) -> str:
    comparison, found = outcome.comparison, outcome.found
    if found is None:
        return describe(comparison, methods)
    wanted = comparison.low if found.mean < comparison.low else comparison.high
    bound = f", wanted {'above' if wanted == comparison.low else 'below'} {signed(wanted)}" if wanted else ""
    effect = f"{signed(found.mean)}{_calibrated(comparison, sample)}{bound}"
    return f"{describe(comparison, methods)}: {effect}, {_noise(found, found.mean - wanted)}"


def _calibrated(comparison: Comparison, sample: Sampler) -> str:
    """What the same comparison gives after calibration, where that is another one."""
    if len({term.reading.measure for term in comparison.terms}) > 1:
        return ""
    terms = [Term(term.weight, other) for term in comparison.terms if (other := calibrated(term.reading))]
    found = measure(terms, sample) if terms else None
    return f" (calibrated {signed(found.mean)})" if found else ""


def _noise(found: Mean, missed: float) -> str:
    """How large a miss is against the noise of a seed, or as far as one seed can tell."""
    if len(found.seeds) > 1:
        spread = float(np.std(found.seeds, ddof=1))
        return f"{_times(missed, spread)} the spread between seeds ({rounded(spread)})"
    return f"{_times(missed, found.error.size if found.error else 0.0)} its standard error, one seed"


def _times(missed: float, noise: float) -> str:
    return f"{abs(missed) / noise:.1f} times" if noise > 0 else "without"
