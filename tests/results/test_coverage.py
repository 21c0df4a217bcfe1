"""The statistics keep their word: 95 % intervals cover the truth 95 times in 100, and tests err at their nominal level.

Simulations with a fixed seed. Values are drawn as the measures of tasks are distributed: bounded, discrete and skewed
(correct answers out of 75), with a difficulty that all methods share within a task. Tolerances are four standard errors
of the simulated share.
"""

import numpy as np
import pytest

from repro.results.contrasts import Comparison, Term, measure
from repro.results.intervals import mean_interval
from repro.results.store import Cell, Reading, Sample

REPEATS, TASKS, QUERIES = 4000, 500, 75
ONE, OTHER = (Reading(Cell("mini", name, 1), "gfsl", 5, "hm") for name in ("one", "other"))


def four_errors(share: float) -> float:
    return 4 * (share * (1 - share) / REPEATS) ** 0.5


@pytest.fixture(scope="module")
def tasks() -> tuple[np.ndarray, np.ndarray, float]:
    """Accuracies in percent of two equally good methods (repeats × tasks), and their true mean."""
    random = np.random.default_rng(20)
    difficulty = random.beta(6, 3, (REPEATS, TASKS))
    one, other = (random.binomial(QUERIES, difficulty) * (100 / QUERIES) for _ in range(2))
    return one, other, 100 * 6 / 9


def test_an_interval_covers_the_true_mean_at_its_nominal_rate(tasks: tuple[np.ndarray, np.ndarray, float]) -> None:
    values, _, truth = tasks
    covered = [abs(found.mean - truth) <= found.ci for found in map(mean_interval, values)]
    assert np.mean(covered) == pytest.approx(0.95, abs=four_errors(0.95))


def contrasts(one: np.ndarray, other: np.ndarray, paired: bool) -> list:
    """The difference one − other of every repeat, as claims measure it."""
    terms = Comparison("", (Term(1, ONE), Term(-1, OTHER))).terms
    found = []
    for first, second in zip(one, other, strict=True):
        samples = {ONE: Sample(first, "list"), OTHER: Sample(second, "list" if paired else "another list")}
        found.append(measure(terms, samples.get))
    return found


@pytest.mark.parametrize("paired", [True, False], ids=["paired", "independent"])
def test_a_comparison_errs_at_its_nominal_level(tasks: tuple[np.ndarray, np.ndarray, float], paired: bool) -> None:
    one, other, _ = tasks
    if not paired:
        other = np.roll(other, 1, axis=0)  # of other tasks: nothing is shared any more
    found = contrasts(one, other, paired)
    assert all(each.paired == paired for each in found)
    covered = [abs(each.effect) <= each.interval() for each in found]
    assert np.mean(covered) == pytest.approx(0.95, abs=four_errors(0.95))
    # Two equally good methods: "one is better" holds in 2.5 %, fails in 2.5 %, and p is uniform.
    assert np.mean([each.holds(0, np.inf) for each in found]) == pytest.approx(0.025, abs=four_errors(0.025))
    assert np.mean([each.fails(0, np.inf, 1) for each in found]) == pytest.approx(0.025, abs=four_errors(0.025))
    p_values = np.array([each.p_value(0, np.inf) for each in found])
    for level in (0.01, 0.05, 0.5, 0.9):
        assert np.mean(p_values <= level) == pytest.approx(level, abs=four_errors(level)), level


def test_pairing_sees_what_separate_tasks_hide(tasks: tuple[np.ndarray, np.ndarray, float]) -> None:
    paired, independent = (contrasts(tasks[0][:200], tasks[1][:200], one_list) for one_list in (True, False))
    width = np.mean([each.interval() for each in independent])
    assert np.mean([each.interval() for each in paired]) < 0.8 * width


def test_several_comparisons_together_err_no_more_often_than_one() -> None:
    """Bonferroni: of ten comparisons that all sit on their bound, any fails in at most 5 % (2.5 % on each side)."""
    random = np.random.default_rng(21)
    any_failed = []
    for _ in range(400):
        shared = random.normal(0, 5, 100)
        found = contrasts(random.normal(0, 1, (10, 100)) + shared, random.normal(0, 1, (10, 100)) + shared, True)
        any_failed.append(any(each.fails(0, np.inf, comparisons=10) for each in found))
    assert np.mean(any_failed) <= 0.05 + 4 * (0.05 * 0.95 / 400) ** 0.5


def test_a_real_difference_is_found(tasks: tuple[np.ndarray, np.ndarray, float]) -> None:
    found = contrasts(tasks[0][:200] + 1.0, tasks[1][:200], paired=True)
    assert np.mean([each.holds(0, np.inf) for each in found]) > 0.8
    assert not any(each.fails(0, np.inf, 1) for each in found)


def test_few_tasks_are_judged_with_students_distribution() -> None:
    random = np.random.default_rng(22)
    found = contrasts(random.normal(0, 1, (REPEATS, 5)), random.normal(0, 1, (REPEATS, 5)), paired=True)
    assert np.mean([abs(each.effect) <= each.interval() for each in found]) == pytest.approx(
        0.95, abs=four_errors(0.95)
    )
