"""Pulls of classes and images against a bootstrap that really draws, and against formulas for values that add up."""

from itertools import combinations

import numpy as np
import pytest

from repro.results.contents import TaskContents
from repro.results.layers import Layer, Pulls
from tests.results.worlds import CLASSES, World, draw_contents, draw_effects, measured


@pytest.fixture(scope="module")
def contents() -> TaskContents:
    return draw_contents(np.random.default_rng(0), 500, 5)


def test_pulls_are_the_limit_of_weighting_tasks_by_multiplicities(contents: TaskContents) -> None:
    random = np.random.default_rng(1)
    values_T = measured(random, World(), draw_effects(random, World()), contents).values_T
    layer = Layer(contents.classes_TW[:, None])
    multiplicities_DC = random.multinomial(CLASSES, np.full(CLASSES, 1 / CLASSES), size=4000)
    weights_DT = 1 + (multiplicities_DC[:, contents.classes_TW] - 1).sum(axis=2)
    means_D = (weights_DT @ values_T) / weights_DT.sum(axis=1)
    drawn = np.var(means_D) * layer.factor_G[0] ** 2
    assert np.square(layer.pulls(values_T).pulls_U).sum() == pytest.approx(drawn, rel=0.1)


@pytest.mark.parametrize("way", [2, 5, 9])
def test_of_values_that_add_up_every_class_pulls_by_its_share(way: int) -> None:
    effects_C = np.random.default_rng(2).normal(0, 5, 10)
    classes_TW = np.array(list(combinations(range(10), way)))
    pulls = Layer(classes_TW[:, None]).pulls(effects_C[classes_TW].mean(axis=1))
    np.testing.assert_allclose(pulls.pulls_U, (effects_C - effects_C.mean()) / 10 * (10 / 9) ** 0.5)
    assert np.square(pulls.pulls_U).sum() == pytest.approx(effects_C.var(ddof=1) / 10)


def test_noise_of_tasks_is_not_taken_for_classes(contents: TaskContents) -> None:
    random = np.random.default_rng(3)
    layer = Layer(contents.classes_TW[:, None])
    found = [layer.pulls(random.normal(0, 5, 500)) for _ in range(200)]
    squares = [float(np.square(each.pulls_U).sum()) for each in found]
    assert np.mean(squares) == pytest.approx(np.mean([each.noise for each in found]), rel=0.1)


def test_domains_are_strata_and_their_difference_is_no_pull() -> None:
    random = np.random.default_rng(4)
    domain_T = random.integers(0, 2, 2000)
    classes_TW = random.random((2000, 10)).argsort(axis=1)[:, :3] + 10 * domain_T[:, None]
    layer = Layer(classes_TW[:, None])
    assert sorted(layer.units_G) == [10, 10]
    assert layer.pulls(50.0 * domain_T).variance == pytest.approx(0.0, abs=1e-12)


def test_all_classes_in_every_task_leave_their_images_to_resample() -> None:
    contents = draw_contents(np.random.default_rng(5), 50, CLASSES)
    assert not contents.resamples_classes
    unseen, seen = contents.layers
    assert len(unseen.units_G) == CLASSES and len(seen.units_G) == 1
    assert draw_contents(np.random.default_rng(5), 50, 5).resamples_classes


def test_units_that_every_task_holds_say_nothing_of_others() -> None:
    everything = Layer(np.tile(np.arange(4), (10, 1, 1)))
    pulls = everything.pulls(np.linspace(0, 1, 10))
    assert not everything.varies
    assert (pulls.variance, pulls.wobble) == (0, 0)


def test_tasks_without_seen_queries_have_one_layer(contents: TaskContents) -> None:
    few_shot = TaskContents(contents.classes_TW, contents.support_TWK, contents.query_TWQ, np.zeros((500, 0), int))
    assert len(few_shot.layers) == 1


def test_the_same_units_pull_together_and_different_ones_apart() -> None:
    one = Pulls(np.array([1, 2]), np.array([3.0, 4.0]), 1.0, 1.0)
    other = Pulls(np.array([2, 5]), np.array([4.0, 1.0]), 2.0, 1.0)
    both = Pulls.sum([one, other])
    np.testing.assert_array_equal(both.names_U, [1, 2, 5])
    np.testing.assert_array_equal(both.pulls_U, [3.0, 8.0, 1.0])
    assert both.variance == 9 + 64 + 1 - 3
    assert one.scaled(0.5).variance == one.variance / 4


def test_a_beginning_is_made_once(contents: TaskContents) -> None:
    assert contents.first(500) is contents
    assert contents.first(10) is contents.first(10)
    np.testing.assert_array_equal(contents.first(10).query_TWQ, contents.query_TWQ[:10])
