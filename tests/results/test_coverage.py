"""The intervals keep their word: 95 % of them cover the truth, with reused images and with trainings that differ.

Simulations with a fixed seed. Bounds are about three standard errors of the simulated share.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from repro.results.comparisons import above
from repro.results.contents import TaskContents
from repro.results.intervals import Error, Mean, estimate, mean_interval
from repro.results.store import Cell, Reading
from tests.results.worlds import World, draw_contents, draw_effects, measured

REPEATS, TASKS = 300, 400
WITHIN = 3.2 * (0.95 * 0.05 / REPEATS) ** 0.5
ONE, OTHER = (Reading(Cell("mini", name, 1), "gfsl", 5, "hm") for name in ("one", "other"))
LARGER = above(ONE, OTHER)


def simulate(world: World, lists: list[TaskContents], same_classes: bool = False, effect: float = 0.0) -> list[Mean]:
    """Estimates of an effect, each from as many seeds as there are lists, in worlds drawn anew."""
    random = np.random.default_rng(len(lists) + 10 * same_classes)
    found = []
    for _ in range(REPEATS):
        shared = draw_effects(random, world)
        drawn = [shared if same_classes else draw_effects(random, world) for _ in lists]
        replicates = [measured(random, world, *each) for each in zip(drawn, lists, strict=True)]
        found.append(estimate([[each] for each in replicates], same_classes))
    return [replace(each, mean=each.mean + effect) for each in found]


@pytest.fixture(scope="module")
def lists() -> list[TaskContents]:
    """Five lists of 5-way tasks."""
    random = np.random.default_rng(0)
    return [draw_contents(random, TASKS, 5) for _ in range(5)]


def coverage(found: list[Mean]) -> float:
    return float(np.mean([abs(each.mean) <= each.wide for each in found]))


def share(found: list[Mean], verdict: str) -> float:
    return float(np.mean([LARGER.judge(each) == verdict for each in found]))


@pytest.mark.parametrize(("way", "shot"), [(5, 1), (15, 1), (20, 1), (20, 5)])
def test_one_seed_covers_other_classes_and_images(way: int, shot: int) -> None:
    contents = draw_contents(np.random.default_rng(way + shot), 1000, way, shot)
    world = World(classes=0.0 if way == 20 else 5.0)  # with all classes in every task, only images are drawn anew
    found = simulate(world, [contents])
    assert coverage(found) == pytest.approx(0.95, abs=WITHIN)
    # What the paper prints is about these images only.
    assert np.mean([abs(each.mean) <= each.ci for each in found]) < 0.5


def test_where_nothing_varies_but_tasks_the_interval_stays_near_the_papers() -> None:
    contents = draw_contents(np.random.default_rng(3), TASKS, 5)
    found = simulate(World(classes=0, support=0, query=0, seen=0, tasks=5), [contents])
    assert 1.0 <= np.mean([each.wide / each.ci for each in found]) < 4.0


def test_two_seeds_are_two_draws(lists: list[TaskContents]) -> None:
    assert coverage(simulate(World(), lists[:2])) == pytest.approx(0.95, abs=WITHIN)


def test_two_seeds_with_the_same_classes_count_them_once(lists: list[TaskContents]) -> None:
    assert coverage(simulate(World(), lists[:2], same_classes=True)) == pytest.approx(0.95, abs=WITHIN)


@pytest.mark.parametrize("seeds", [3, 5])
def test_several_seeds_cover_the_training_too(seeds: int, lists: list[TaskContents]) -> None:
    found = simulate(World(training=3.0), lists[:seeds])
    assert coverage(found) == pytest.approx(0.95, abs=WITHIN)


def test_seeds_with_the_same_classes_are_crossed_with_them(lists: list[TaskContents]) -> None:
    found = simulate(World(training=2.0), lists[:4], same_classes=True)
    assert 0.95 - WITHIN <= coverage(found) <= 1.0  # crossed variances count what both share twice
    seeds_only = [replace(each, find_error=partial(error_of_seeds, each)) for each in found]
    assert coverage(seeds_only) < 0.9


def error_of_seeds(found: Mean) -> Error:
    """That of Student's t over the seeds alone."""
    return Error(float(np.std(found.seeds, ddof=1)) / len(found.seeds) ** 0.5, len(found.seeds) - 1.0, "")


def test_one_seed_says_nothing_about_the_training(lists: list[TaskContents]) -> None:
    found = simulate(World(training=8.0), lists[:1])
    assert coverage(found) < 0.8
    assert all(each.error and each.error.covers.endswith("one seed: training noise is not in it") for each in found)


@pytest.mark.parametrize(("seeds", "training"), [(1, 0.0), (2, 0.0), (3, 3.0), (5, 3.0)])
def test_no_effect_is_rarely_called_one(seeds: int, training: float, lists: list[TaskContents]) -> None:
    found = simulate(World(training=training), lists[:seeds])
    assert share(found, "holds") <= 0.05
    assert share(found, "fails") <= 0.05


@pytest.mark.parametrize(
    ("seeds", "training", "effect"), [(1, 0.0, 10.0), (2, 0.0, 8.0), (3, 3.0, 20.0), (5, 3.0, 10.0)]
)
def test_a_large_effect_is_found(seeds: int, training: float, effect: float, lists: list[TaskContents]) -> None:
    world = World(training=training)
    assert share(simulate(world, lists[:seeds], effect=effect), "holds") >= 0.9
    assert share(simulate(world, lists[:seeds], effect=-effect), "fails") >= 0.9


def test_several_comparisons_together_err_no_more_often_than_one(lists: list[TaskContents]) -> None:
    """Bonferroni: of ten comparisons that all sit on their bound, any fails in at most 5 % of runs."""
    found = simulate(World(training=3.0), lists[:3])
    failed = [LARGER.judge(each, failing=10) == "fails" for each in found]
    any_failed = [any(failed[start : start + 10]) for start in range(0, REPEATS, 10)]
    assert np.mean(any_failed) <= 0.05 + 3 * (0.05 * 0.95 / len(any_failed)) ** 0.5


def test_the_papers_interval_covers_where_tasks_are_independent() -> None:
    """Bounded, discrete and skewed values, as accuracies of tasks are."""
    random = np.random.default_rng(20)
    values = random.binomial(75, random.beta(6, 3, (2000, 500))) * (100 / 75)
    covered = [abs(found.mean - 100 * 6 / 9) <= found.ci for found in map(mean_interval, values)]
    assert np.mean(covered) == pytest.approx(0.95, abs=4 * (0.95 * 0.05 / 2000) ** 0.5)
