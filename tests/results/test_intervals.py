"""Means with intervals against their formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.results.intervals import Values, estimate, mean_interval
from tests.results.worlds import World, draw_contents, draw_effects, measured

VALUES = st.lists(st.floats(0, 100, width=32), min_size=2, max_size=30)


@given(values=VALUES)
def test_the_interval_is_the_papers(values: list[float]) -> None:
    found = mean_interval(np.array(values, np.float32))
    mean = sum(values) / len(values)
    spread = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
    assert found.mean == pytest.approx(mean, abs=1e-6) and found.tasks == len(values)
    assert found.ci == pytest.approx(1.96 * spread / len(values) ** 0.5, abs=1e-5)


def test_one_task_has_no_interval() -> None:
    found = mean_interval(np.array([50.0]))
    assert found.mean == 50.0 and np.isnan(found.ci)


def test_no_tasks_have_no_mean() -> None:
    assert np.isnan(mean_interval(np.array([])).mean)


def values(seed: int, way: int = 5) -> Values:
    random = np.random.default_rng(seed)
    return measured(random, World(), draw_effects(random, World()), draw_contents(random, 200, way))


def covers(*replicates: Values, same_classes: bool = False) -> str:
    error = estimate([[each] for each in replicates], same_classes).error
    return error.covers if error else "nothing"


def test_an_interval_says_what_it_covers() -> None:
    one, two, three = (values(seed) for seed in range(3))
    assert covers(one) == "classes and images; one seed: training noise is not in it"
    assert covers(one, two) == "classes and images; two seeds: training noise is not in it"
    assert covers(one, two, three) == "3 seeds: training, classes, images"
    assert covers(one, two, three, same_classes=True) == "3 seeds: training; classes and images"
    every_class = "images, not classes: every task holds all of them"
    assert covers(values(0, way=20)) == f"{every_class}; one seed: training noise is not in it"


def test_without_contents_few_seeds_have_no_interval_for_verdicts() -> None:
    plain = [Values(values(seed).values_T) for seed in range(3)]
    assert covers(*plain[:1]) == covers(*plain[:2]) == "nothing"
    assert covers(*plain) == "3 seeds: training, classes, images"
    assert covers(*plain, same_classes=True) == "3 seeds: training; classes and images are not in it"


def test_summands_on_lists_of_their_own_add_their_variances() -> None:
    one, other = values(0), values(1, way=20)
    both = estimate([[one, other]])
    apart = [estimate([[each]]) for each in (one, other)]
    assert both.mean == pytest.approx(sum(each.mean for each in apart))
    assert both.ci**2 == pytest.approx(sum(each.ci**2 for each in apart))
    assert both.error and both.error.size**2 == pytest.approx(sum(each.error.size**2 for each in apart if each.error))


def test_values_that_do_not_vary_are_certain() -> None:
    found = estimate([[Values(np.full(200, 3.0), values(0).contents)]])
    assert (found.mean, found.wide) == (3.0, 0.0)
