"""Claims: the test is the paired t-test, verdicts follow the data and flip with it, missing records leave them open."""

from collections.abc import Callable
from math import inf

import numpy as np
import pytest
from scipy import stats

from repro.results.claims import Claim, Outcome, judge
from repro.results.contrasts import Comparison, Contrast, Term, measure
from repro.results.paper_claims import CLAIMS
from repro.results.store import Cell, Reading, Sample

TASKS = 400
Means = Callable[[Reading], float]


def sampler(means: Means, missing: Callable[[Reading], bool] = lambda _: False) -> Callable[[Reading], Sample | None]:
    """Samples with the wished means; tasks of the same way and shot share their difficulty."""

    def sample(reading: Reading) -> Sample | None:
        if missing(reading):
            return None
        way = 20 if reading.way == "all" else 0 if reading.way == "any" else reading.way
        difficulty = np.random.default_rng([way, reading.cell.shot]).normal(0, 5, TASKS)
        own = np.random.default_rng(list(repr(reading).encode())).normal(0, 0.3, TASKS)
        noise = difficulty + own
        return Sample(means(reading) + noise - noise.mean(), f"{reading.cell.shot}/{way}")

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
    "castle_adapted": 66.3,
    "acastle_adapted": 68.4,
}
CALIBRATED = {"ifsl": 56.0, "l2ml": 55.0, "dfsl": 62.0, "mc_knn": 55.0, "mc_protonet": 54.0, "protonet": 62.6}
ABLATED_HM = {"scratch": 40.0, "classifiers1": 64.0, "classifiers128": 66.5, "classifiers256": 67.0, "postavg": 66.0}
ABLATED_FSL = {"scratch": 64.0, "ratio0": 60.0, "ratio1": 63.0, "ratio3": 66.2, "ratio4": 65.0}


def as_published(reading: Reading) -> float:
    """A mean for every reading, in the directions that the paper reports."""
    method, variant, name = reading.cell.method, reading.cell.variant, reading.measure
    if method == "upper_bound":
        return 90.0 if reading.way == 5 else 85.0
    if reading.protocol == "fsl":
        return ABLATED_FSL.get(variant, 66.0) - (20 if reading.way == "all" else 0)
    hm = ABLATED_HM.get(variant, HM[method])
    values = {
        "hm": hm - (20 if reading.way == "all" and hm > 21 else 0),
        "cal_hm": CALIBRATED.get(method, hm + 0.5),
        "acc": hm + 1,
        "delta": 100 - hm,
        "ausuc": hm / 2,
        "s_su": {"acastle": 60.0}.get(method, 50.0),
        "u_su": {"acastle": 51.0}.get(method, 50.0),
        "conf_ratio": 2.1,
        "proto_s": 40.0,
        "syn_s": 50.0,
        "many_s": 80.0,
    }
    return values[name]


def small_noise(sample: Callable[[Reading], Sample | None]) -> Callable[[Reading], Sample | None]:
    """Confidences live between 0 and 1, so their noise is scaled down; everything else stays."""

    def scaled(reading: Reading) -> Sample | None:
        found = sample(reading)
        if found is None or not reading.measure.startswith("conf"):
            return found
        return Sample(found.values.mean() + 0.01 * (found.values - found.values.mean()), found.tasks)

    return scaled


def verdicts(means: Means) -> dict[str, str]:
    sample = small_noise(sampler(means))
    return {claim.key: judge(claim, sample).verdict for claim in CLAIMS}


def test_every_claim_holds_where_the_data_are_as_the_paper_says() -> None:
    assert set(verdicts(as_published).values()) == {"holds"}


def test_every_claim_fails_where_the_data_say_the_opposite() -> None:
    def opposite(reading: Reading) -> float:
        return 100 - as_published(reading) + (7 if reading.cell.variant == "postavg" else 0)

    flipped = verdicts(opposite)
    assert {key for key, verdict in flipped.items() if verdict != "fails"} == set()


def test_every_claim_is_open_without_records() -> None:
    for claim in CLAIMS:
        outcome = judge(claim, lambda _: None)
        assert (outcome.verdict, outcome.binding.contrast) == ("cannot say", None)
        assert outcome.missing == tuple(sorted({reading.cell.name for reading in claim.readings()}))


def test_claims_have_their_own_keys() -> None:
    assert len({claim.key for claim in CLAIMS}) == len(CLAIMS) == 36


A, B, C = (Reading(Cell("mini", name, 1), "gfsl", 5, "hm") for name in ("castle", "dfsl", "l2ml"))


def claim_of(*comparisons: Comparison) -> Claim:
    return Claim("key", "words", "T0", (comparisons,))


def above(first: Reading, second: Reading) -> Comparison:
    return Comparison("first − second", (Term(1.0, first), Term(-1.0, second)))


def judged(claim: Claim, means: dict[Reading, float]) -> Outcome:
    return judge(claim, sampler(lambda reading: means[reading], missing=lambda reading: reading not in means))


def test_one_missing_rival_leaves_a_claim_open_and_is_named() -> None:
    outcome = judged(claim_of(above(A, B), above(A, C)), {A: 5.0, B: 1.0})
    assert (outcome.verdict, outcome.missing) == ("cannot say", ("mini-l2ml-1shot",))


def test_one_refuted_comparison_is_enough_to_fail() -> None:
    outcome = judged(claim_of(above(A, B), above(A, C)), {A: 5.0, B: 9.0})
    assert outcome.verdict == "fails"
    assert outcome.binding.contrast is not None and outcome.binding.contrast.effect == pytest.approx(-4.0)


def test_an_interval_across_the_bound_leaves_a_claim_open() -> None:
    assert judged(claim_of(above(A, B)), {A: 5.0, B: 5.0}).verdict == "cannot say"


def test_the_binding_comparison_is_the_weakest() -> None:
    outcome = judged(claim_of(above(A, B), above(A, C)), {A: 5.0, B: 1.0, C: 4.0})
    assert outcome.verdict == "holds"
    assert outcome.binding.comparison.terms[1].reading == C


def test_an_alternative_is_enough() -> None:
    either = Claim("key", "words", "T0", ((above(B, A),), (above(C, A),)))
    assert judged(either, {A: 5.0, B: 1.0, C: 9.0}).verdict == "holds"
    assert judged(either, {A: 5.0, B: 1.0, C: 2.0}).verdict == "fails"
    assert judged(either, {A: 5.0, B: 1.0}).verdict == "cannot say"


def test_a_single_group_is_the_paired_t_test() -> None:
    random = np.random.default_rng(0)
    first, second = random.normal(1, 3, 50), random.normal(0.5, 3, 50)
    samples = {A: Sample(first, "same"), B: Sample(second, "same")}
    contrast = measure((Term(1.0, A), Term(-1.0, B)), samples.get)
    assert contrast is not None and contrast.paired
    expected = stats.ttest_rel(first, second, alternative="greater")
    assert contrast.p_value(0.0, inf) == pytest.approx(expected.pvalue)
    low, high = stats.ttest_rel(first, second).confidence_interval(0.95)
    assert contrast.interval() == pytest.approx((high - low) / 2)


def test_different_tasks_are_compared_by_welch() -> None:
    random = np.random.default_rng(0)
    first, second = random.normal(1, 3, 50), random.normal(0.5, 1, 70)
    samples = {A: Sample(first, "these"), B: Sample(second, "those")}
    contrast = measure((Term(1.0, A), Term(-1.0, B)), samples.get)
    assert contrast is not None and not contrast.paired
    expected = stats.ttest_ind(first, second, equal_var=False, alternative="greater")
    assert contrast.p_value(0.0, inf) == pytest.approx(expected.pvalue)
    assert contrast.freedom == pytest.approx(expected.df)


def test_a_cell_that_stopped_early_is_paired_on_the_tasks_it_has() -> None:
    first, second = np.arange(50.0), np.arange(20.0) ** 2
    samples = {A: Sample(first, "same"), B: Sample(second, "same")}
    contrast = measure((Term(1.0, A), Term(-1.0, B)), samples.get)
    assert contrast is not None and contrast.paired and contrast.tasks == 20
    assert contrast.effect == pytest.approx((first[:20] - second).mean())


def test_constant_differences_are_certain() -> None:
    contrast = Contrast(effect=0.0, error=0.0, freedom=9.0, tasks=10, paired=True)
    assert contrast.holds(-1.0, 1.0) and contrast.p_value(-1.0, 1.0) == 0.0
    assert not contrast.holds(0.0, inf) and contrast.p_value(0.0, inf) == 1.0


def test_failing_is_corrected_for_the_number_of_comparisons() -> None:
    contrast = Contrast(effect=-2.1, error=1.0, freedom=1000.0, tasks=1001, paired=True)
    assert contrast.fails(0.0, inf, comparisons=1)
    assert not contrast.fails(0.0, inf, comparisons=10)
