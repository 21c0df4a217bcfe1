"""Claims as printed: the paper's own effect from its tables, ours with what its interval covers, and why one fails."""

from pathlib import Path

import numpy as np
import pytest

from repro.report.claim_views import coverage_notes, summary, view_claims
from repro.report.claim_words import describe, diagnose
from repro.report.printed import Printed
from repro.results.claims import Claim, Place, judge
from repro.results.comparisons import above, difference, gfsl
from repro.results.paper_claims import CLAIMS, DESCRIBED
from repro.results.published import read_published
from repro.results.store import Cell, Reading, Replicate, Results, Sample
from tests.report.conftest import KNOWN, PAPER

CASTLE, DFSL, SCRATCH = Cell("mini", "castle", 1), Cell("mini", "dfsl", 1), Cell("mini", "castle", 1, "scratch")
PLACE = Place("6.3", 600, ("T2",))


@pytest.fixture(scope="module")
def printed() -> Printed:
    return Printed(read_published(PAPER / "published.yaml"))


def test_the_papers_effect_is_computed_from_what_it_prints(printed: Printed) -> None:
    hm = above(gfsl(CASTLE, 5, "hm"), gfsl(DFSL, 5, "hm"))
    assert printed.effect(hm, ("T2",)) == pytest.approx(66.22 - 62.08)
    assert printed.effect(above(gfsl(CASTLE, 5, "ausuc"), gfsl(DFSL, 5, "ausuc")), ("F7",)) is None


def test_a_number_printed_twice_is_taken_from_the_claims_own_table(printed: Printed) -> None:
    fsl = Reading(CASTLE, "fsl", 5, "u_u")
    assert (printed.value(fsl, ("T7",)), printed.value(fsl, ("T5",)), printed.value(fsl)) == (66.83, 66.75, 66.75)


def test_numbers_of_the_running_text_are_known(printed: Printed) -> None:
    calibrated = above(gfsl(Cell("mini", "protonet", 1), 5, "cal_hm"), gfsl(DFSL, 5, "cal_hm"))
    assert printed.effect(calibrated, ("F6",)) == pytest.approx(0.32)
    assert printed.value(DESCRIBED[0].reading) == 2.1


def test_every_claim_about_a_table_has_the_papers_effect(printed: Printed) -> None:
    for claim in CLAIMS:
        if claim.place.shown_in[0].startswith("T") and not claim.key.startswith("fsl"):
            compared = [each for group in claim.alternatives for each in group]
            assert all(printed.effect(each, claim.place.shown_in) is not None for each in compared), claim.key


def test_a_comparison_says_once_what_both_sides_share() -> None:
    hm = [gfsl(cell, 5, "hm") for cell in (CASTLE, DFSL, SCRATCH)]
    assert describe(above(hm[0], hm[1]), KNOWN) == "CASTLE − DFSL, HM, mini, 1-shot, 5 ways"
    assert describe(above(hm[0], hm[2]), KNOWN) == "CASTLE − CASTLE without pre-training, HM, mini, 1-shot, 5 ways"
    lift = above(gfsl(DFSL, "all", "cal_hm"), gfsl(DFSL, "all", "hm"))
    assert describe(lift, KNOWN) == "calibrated HM − HM, DFSL, mini, 1-shot, all ways"


def samples(means: dict[Reading, float], spread: float, seeds: int = 3) -> dict[Reading, Sample]:
    """Three seeds whose means lie `spread` apart, the first of every second reading lowest."""
    return {
        reading: Sample(
            {
                seed: Replicate(np.linspace(-1, 1, 30) + mean + spread * (seed - 1) * (place % 2), f"list {seed}")
                for seed in range(seeds)
            }
        )
        for place, (reading, mean) in enumerate(means.items())
    }


def test_a_failed_claim_names_rival_shot_ways_calibration_and_noise() -> None:
    means = {gfsl(CASTLE, 5, "hm"): 60.0, gfsl(DFSL, 5, "hm"): 63.0}
    means |= {gfsl(CASTLE, 5, "cal_hm"): 64.0, gfsl(DFSL, 5, "cal_hm"): 62.0}
    claim = Claim("key", "words", PLACE, "the reverse", ((above(*list(means)[:2]),),))
    sample = samples(means, spread=0.5).get
    expected = (
        "CASTLE − DFSL, HM, mini, 1-shot, 5 ways: −3.00 (calibrated +2.00), 6.0 times the spread between seeds (0.50)"
    )
    assert diagnose(judge(claim, sample), sample, KNOWN) == expected
    assert diagnose(judge(claim, samples(means, spread=50.0).get), sample, KNOWN) == ""


def test_a_miss_is_counted_from_its_bound() -> None:
    means = {gfsl(CASTLE, 5, "ausuc"): 62.0, gfsl(DFSL, 5, "ausuc"): 61.0}
    claim = Claim("key", "words", PLACE, "the reverse", ((difference(*means, 5.0),),))
    sample = samples(means, spread=0.1).get
    assert ": +1.00, wanted above +5.00, 40.0 times the spread" in diagnose(judge(claim, sample), sample, KNOWN)


def test_a_row_that_the_paper_lacks_is_diagnosed_too() -> None:
    mine = gfsl(Cell("mini", "mine", 1), 5, "ausuc")
    means = {gfsl(CASTLE, 5, "ausuc"): 62.0, gfsl(DFSL, 5, "ausuc"): 60.0, mine: 65.0}
    castle, dfsl, _ = means
    claim = Claim("key", "words", PLACE, "the reverse", ((above(castle, dfsl),),), (above(castle, mine),))
    sample = samples(means, spread=0.01).get
    assert diagnose(judge(claim, sample), sample, KNOWN).startswith("against all rows: CASTLE − mine, AUSUC")


def test_views_of_nothing_are_open_and_still_show_the_paper(tmp_path: Path, printed: Printed) -> None:
    views = view_claims(CLAIMS, DESCRIBED, Results(tmp_path, {}), printed, KNOWN)
    assert summary(views) == f"Of {len(CLAIMS)} claims 0 hold, 0 are tied, 0 fail, and {len(CLAIMS)} cannot be judged."
    assert coverage_notes(views) == {}
    assert (views[-1].verdict, views[-1].decided.published, views[-1].decided.effect) == ("described", "2.10", "–")
    (order,) = (view for view in views if view.key == "domains-heterogeneous")
    assert (order.section, order.line, order.shown_in) == ("5.3", 523, "T1a")
    assert [each.published for each in order.comparisons] == ["+3.76", "+1.55", "+0.23"]
    assert order.published == "+0.23"
