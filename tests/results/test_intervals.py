"""Means with intervals against their formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.results.intervals import mean_interval

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
