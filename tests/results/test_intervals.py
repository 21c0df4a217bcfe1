"""Means with intervals, alone and paired, against their formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.errors import BadInput
from repro.results.intervals import mean_interval, paired_difference

VALUES = st.lists(st.floats(0, 100, width=32), min_size=1, max_size=30)


@given(values=VALUES)
def test_the_interval_is_the_papers(values: list[float]) -> None:
    found = mean_interval(np.array(values, np.float32))
    mean = sum(values) / len(values)
    spread = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
    assert found.mean == pytest.approx(mean, abs=1e-6) and found.tasks == len(values)
    assert found.ci == pytest.approx(1.96 * spread / len(values) ** 0.5, abs=1e-5)


def test_no_tasks_have_no_mean() -> None:
    assert np.isnan(mean_interval(np.array([])).mean)


@given(values=VALUES, shift=st.floats(-5, 5, width=32))
def test_a_constant_lead_has_no_uncertainty(values: list[float], shift: float) -> None:
    second = np.array(values, np.float64)
    found = paired_difference(second + shift, second)
    assert found.mean == pytest.approx(shift, abs=1e-9) and found.ci == pytest.approx(0, abs=1e-9)


def test_pairing_sees_what_separate_intervals_hide() -> None:
    random = np.random.default_rng(0)
    easy = random.normal(60, 10, 400)
    found = paired_difference(easy + random.normal(0.5, 1, 400), easy)
    assert found.mean - found.ci > 0 and mean_interval(easy).ci > found.mean


def test_unequal_numbers_cannot_be_paired() -> None:
    with pytest.raises(BadInput, match="3 and 4 tasks cannot be paired"):
        paired_difference(np.zeros(3), np.zeros(4))
