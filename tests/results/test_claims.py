"""Claims: verdicts follow the data and flip with it, missing records and noise leave them open."""

from collections.abc import Callable
from math import inf

import numpy as np
import pytest
from scipy import stats

from repro.results.claims import Claim, Outcome, Place, judge
from repro.results.comparisons import above, difference
from repro.results.contrasts import Comparison, Sampler, Term, measure
from repro.results.intervals import Error, Mean
from repro.results.paper_claims import CLAIMS, paper_claims
from repro.results.store import Cell, Reading, Replicate, Sample

TASKS, SEEDS = 50, 3
Means = Callable[[Reading], float]


def sampler(means: Means, missing: Callable[[Reading], bool] = lambda _: False, training: float = 0.001) -> Sampler:
    """Samples with the wished means; tasks of a seed share their difficulty, trainings differ around it."""

    def sample(reading: Reading) -> Sample | None:
        if missing(reading):
            return None
        way = {"all": 20, "any": 0}.get(str(reading.way), reading.way)
        seeds = {}
        own_S = np.random.default_rng(list(repr(reading).encode())).normal(0, training, SEEDS)
        for seed in range(SEEDS):
            difficulty = np.random.default_rng([seed, int(way), reading.cell.shot]).normal(0, 5, TASKS)
            values = means(reading) + difficulty - difficulty.mean() + own_S[seed] - own_S.mean()
            seeds[seed] = Replicate(values, f"{seed}/{reading.cell.shot}/{way}")
        return Sample(seeds)

    return sample


# A world in which everything the paper says is true: HM at 5 ways, 1-shot, per method.
HM = {
    "l2ml": 20.0,
    "dfsl": 60.0,
    "mc_knn": 0.0,
    "mc_protonet": 0.1,
    "protonet": 19.0,
    "ifsl": 50.0,
    "castle_minus": 63.0,
    "castle": 66.0,
    "acastle": 68.0,
    "lwf": 58.0,
    "icarl": 59.0,
    "castle_adapted": 66.8,
    "acastle_adapted": 68.8,
}
GAIN = {"ifsl": 6.0, "l2ml": 35.0, "dfsl": 2.0, "mc_knn": 55.0, "mc_protonet": 54.0, "protonet": 43.6}
ABLATED_HM = {"scratch": 40.0, "classifiers1": 64.0, "classifiers128": 66.5, "classifiers256": 67.0, "postavg": 66.0}
ABLATED_FSL = {"scratch": 64.0, "ratio0": 60.0, "ratio1": 63.0, "ratio3": 66.2, "ratio4": 65.0}


def as_published(reading: Reading) -> float:
    """A mean for every reading, in the directions that the paper reports."""
    method, variant, name = reading.cell.method, reading.cell.variant, reading.measure
    if method == "upper_bound":
        return 90.0 if reading.way == 5 else 85.0
    if reading.protocol == "fsl":
        return ABLATED_FSL.get(variant, 66.0 if "castle" in method else 60.0) - (20 if reading.way == "all" else 0)
    hm = ABLATED_HM.get(variant, HM[method])
    values = {
        "hm": hm - (20 if reading.way == "all" and hm > 21 else 0),
        "cal_hm": hm + GAIN.get(method, 0.5),
        "acc": hm + 1,
        "delta": 100 - hm,
        "ausuc": hm / 2,
        "s_su": {"acastle": 60.0}.get(method, 50.0),
        "proto_s": 40.0,
        "syn_s": 45.0 if variant == "vanilla" else 50.0,
        "many_s": 80.0,
    }
    return values[name]


def unmeasured(reading: Reading) -> bool:
    return reading.cell.method not in {*HM, "upper_bound"}


def verdicts(means: Means, training: float = 0.001) -> dict[str, str]:
    return {claim.key: judge(claim, sampler(means, unmeasured, training)).verdict for claim in CLAIMS}


def test_every_claim_holds_where_the_data_are_as_the_paper_says() -> None:
    assert {key: verdict for key, verdict in verdicts(as_published).items() if verdict != "holds"} == {}


def test_every_claim_fails_where_the_data_say_the_opposite() -> None:
    def opposite(reading: Reading) -> float:
        return 100 - as_published(reading) + (7 if reading.cell.variant == "postavg" else 0)

    assert {key: verdict for key, verdict in verdicts(opposite).items() if verdict != "fails"} == {}


def test_every_claim_is_open_where_trainings_differ_more_than_methods() -> None:
    assert set(verdicts(as_published, training=200.0).values()) == {"cannot say"}


def test_orders_are_tied_where_all_methods_are_equal() -> None:
    tied = {key for key, verdict in verdicts(lambda _: 50.0).items() if verdict == "tied"}
    assert {"hm-mini-1shot-5", "acc-5shot", "domains-office", "classifiers", "synthesis-over", "ausuc-all"} <= tied
    assert {"adaptation-castle", "adaptation-acastle"} <= tied, "a gain is one beyond half a point, like any other"


def test_every_claim_is_open_without_records() -> None:
    for claim in CLAIMS:
        outcome = judge(claim, lambda _: None)
        assert (outcome.verdict, outcome.binding.found, outcome.against_all) == ("cannot say", None, None)
        assert outcome.missing == tuple(sorted({reading.cell.name for reading in claim.readings()}))


def test_claims_have_their_own_keys_and_places() -> None:
    assert len({claim.key for claim in CLAIMS}) == len(CLAIMS) == 42
    assert all(500 < claim.place.line < 1005 and claim.place.shown_in and claim.refuted_by for claim in CLAIMS)


def rivals(key: str) -> set[str]:
    (claim,) = (claim for claim in CLAIMS if claim.key == key)
    return {reading.cell.method for reading in claim.readings()}


def test_rivals_are_those_that_the_sentence_names() -> None:
    assert rivals("acc-1shot") == {"acastle", "ifsl", "l2ml", "dfsl", "mc_knn", "mc_protonet", "protonet"}
    assert rivals("hm-mini-1shot-5") == rivals("acc-1shot") - {"ifsl"} | {"castle"}
    assert "castle" not in rivals("every-way") and "dfsl" in rivals("domains-office")
    assert "l2ml" not in rivals("hm-tiered-1shot-all")
    assert not any(claim.key.startswith("hm-tiered") and claim.key.endswith("-5") for claim in CLAIMS)


A, B, C = (Reading(Cell("mini", name, 1), "gfsl", 5, "hm") for name in ("castle", "dfsl", "l2ml"))


def claim_of(*comparisons: Comparison, further: tuple[Comparison, ...] = ()) -> Claim:
    return Claim("key", "words", Place("1", 1, ("T0",)), "the reverse", (comparisons,), further)


def judged(claim: Claim, means: dict[Reading, float]) -> Outcome:
    return judge(claim, sampler(lambda reading: means[reading], missing=lambda reading: reading not in means))


def test_a_row_that_the_paper_lacks_decides_the_second_verdict_only() -> None:
    claim = claim_of(above(A, B), further=(above(A, C),))
    better, worse, absent = ({A: 5.0, B: 1.0} | more for more in ({C: 4.0}, {C: 9.0}, {}))
    assert [judged(claim, means).verdict for means in (better, worse, absent)] == ["holds"] * 3
    assert [judged(claim, means).against_all for means in (better, worse, absent)] == ["holds", "fails", None]
    assert judged(claim, worse).missing == ()


def test_what_fails_on_the_papers_rows_fails_against_more() -> None:
    further = tuple(above(A, Reading(Cell("mini", f"row{number}", 1), "gfsl", 5, "hm")) for number in range(20))
    claim = claim_of(above(A, B), further=further)

    def means(reading: Reading) -> float:
        return {A: 5.0, B: 6.2}.get(reading, 0.0)

    outcome = judge(claim, sampler(means, training=0.2))
    widened = claim.alternatives[0][0].judge(outcome.binding.found, failing=21)
    assert (outcome.verdict, widened, outcome.against_all) == ("fails", "cannot say", "fails")


def test_rows_that_a_sentence_names_or_is_about_are_not_its_further_rivals() -> None:
    plain, more = (paper_claims(rows) for rows in ((), ("castle", "acastle", "protonet", "ifsl")))
    for claim, same in zip(plain, more, strict=True):
        named = {reading.cell.method for reading in claim.readings()}
        added = {reading.cell.method for reading in set(same.further_readings()) - set(claim.further_readings())}
        assert added <= {"protonet"} - named, claim.key
        assert len(set(same.further)) == len(same.further)


def test_a_users_row_is_held_against_the_leaders() -> None:
    (claim,) = (claim for claim in paper_claims(rows=("mine",)) if claim.key == "hm-mini-1shot-5")

    def with_mine(reading: Reading) -> float:
        return 99.0 if reading.cell.method == "mine" else as_published(reading)

    outcome = judge(claim, sampler(with_mine, lambda reading: unmeasured(reading) and reading.cell.method != "mine"))
    assert (outcome.verdict, outcome.against_all) == ("holds", "fails")
    assert outcome.stands_against is not None
    assert outcome.stands_against.comparison.terms[1].reading.cell.method == "mine"


def test_one_missing_rival_leaves_a_claim_open_and_is_named() -> None:
    outcome = judged(claim_of(above(A, B), above(A, C)), {A: 5.0, B: 1.0})
    assert (outcome.verdict, outcome.missing) == ("cannot say", ("mini-l2ml-1shot",))


def test_one_refuted_comparison_is_enough_to_fail() -> None:
    outcome = judged(claim_of(above(A, B), above(A, C)), {A: 5.0, B: 9.0})
    assert outcome.verdict == "fails"
    assert outcome.binding.found is not None and outcome.binding.found.mean == pytest.approx(-4.0, abs=0.01)


def test_the_binding_comparison_is_the_weakest() -> None:
    outcome = judged(claim_of(above(A, B), above(A, C)), {A: 5.0, B: 1.0, C: 4.0})
    assert outcome.verdict == "holds"
    assert outcome.binding.comparison.terms[1].reading == C


def test_an_alternative_is_enough() -> None:
    either = Claim("key", "words", Place("1", 1, ()), "", ((above(B, A),), (above(C, A),)))
    assert judged(either, {A: 5.0, B: 1.0, C: 9.0}).verdict == "holds"
    assert judged(either, {A: 5.0, B: 1.0, C: 2.0}).verdict == "fails"
    assert judged(either, {A: 5.0, B: 1.0}).verdict == "cannot say"


def found(mean: float, half_width: float) -> Mean:
    return Mean(mean, 0.0, 10, (mean,), lambda: Error(half_width / 1.959964, inf, ""))


@pytest.mark.parametrize(
    ("mean", "half_width", "verdict"),
    [
        (1.0, 0.9, "holds"),
        (0.2, 0.1, "holds"),
        (0.0, 0.4, "tied"),
        (-0.2, 0.1, "tied"),
        (-0.6, 0.2, "fails"),
        (0.2, 0.4, "cannot say"),
        (-0.4, 0.6, "cannot say"),
    ],
)
def test_larger_holds_above_zero_is_tied_within_half_a_point_and_fails_below(
    mean: float, half_width: float, verdict: str
) -> None:
    assert above(A, B).judge(found(mean, half_width)) == verdict


def test_bounds_have_no_ties() -> None:
    near = difference(A, B, -1.0, 1.0)
    assert [near.judge(found(mean, 0.2)) for mean in (0.5, 1.0, 1.5, -1.5)] == ["holds", "cannot say", "fails", "fails"]


def test_without_an_interval_for_verdicts_nothing_is_said() -> None:
    assert above(A, B).judge(Mean(5.0, 0.1, 10)) == above(A, B).judge(None) == "cannot say"


def test_several_ways_of_failing_or_holding_ask_for_more() -> None:
    assert above(A, B).judge(found(-2.1, 2.0)) == "fails"
    assert above(A, B).judge(found(-2.1, 2.0), failing=10) == "cannot say"
    assert above(A, B).judge(found(2.1, 2.0)) == "holds"
    assert above(A, B).judge(found(2.1, 2.0), holding=4) == "cannot say"


def test_seeds_are_paired() -> None:
    random = np.random.default_rng(0)
    first, second = random.normal(1, 3, (4, 50)), random.normal(0.5, 3, (4, 50))
    samples = {
        reading: Sample({seed: Replicate(values, f"list {seed}") for seed, values in enumerate(rows)})
        for reading, rows in ((A, first), (B, second))
    }
    contrast = measure((Term(1.0, A), Term(-1.0, B)), samples.get)
    assert contrast is not None and contrast.tasks == 200
    low, high = stats.ttest_rel(first.mean(axis=1), second.mean(axis=1)).confidence_interval(0.95)
    assert contrast.wide == pytest.approx((high - low) / 2)
    assert contrast.ci == pytest.approx(1.96 * (first - second).std() / 200**0.5)


def test_only_seeds_that_both_have_are_compared() -> None:
    lists = {seed: Replicate(np.arange(20.0) + seed, f"list {seed}") for seed in range(3)}
    samples = {A: Sample(lists), B: Sample({2: lists[2]}), C: Sample({7: lists[0]})}
    contrast = measure((Term(1.0, A), Term(-1.0, B)), samples.get)
    assert contrast is not None and contrast.seeds == (0.0,)
    assert measure((Term(1.0, A), Term(-1.0, C)), samples.get) is None


def test_a_cell_that_stopped_early_is_paired_on_the_tasks_it_has() -> None:
    first, second = np.arange(50.0), np.arange(20.0) ** 2
    samples = {A: Sample({0: Replicate(first, "same")}), B: Sample({0: Replicate(second, "same")})}
    contrast = measure((Term(1.0, A), Term(-1.0, B)), samples.get)
    assert contrast is not None and contrast.tasks == 20
    assert contrast.mean == pytest.approx((first[:20] - second).mean())
