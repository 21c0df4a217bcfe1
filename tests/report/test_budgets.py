"""The picture of budgets: every benchmark that was tuned, all its lines and nothing squeezed away."""

from pathlib import Path

import pytest
from PIL import Image

from repro.report.budgets import draw_budgets
from repro.report.facts import Methods
from repro.results.tuning import read_tunings
from tests.report.conftest import CARDS

TUNED = read_tunings(Path("paper/tuning.json")).benchmarks


@pytest.mark.parametrize("benchmark", TUNED)
def test_every_tuned_benchmark_fits_its_picture(benchmark: str, tmp_path: Path) -> None:
    """A layout that collapses is a warning, and a warning is an error here; the page is filled to its foot."""
    tuning = TUNED[benchmark]
    picture = Image.open(draw_budgets(tuning, Methods(CARDS), tmp_path)).convert("L")
    left, top, right, bottom = picture.point(lambda value: 255 * (value < 250)).getbbox()
    panels = bool(tuning.pretraining) + len({one.dataset for one in tuning.budgets})
    assert right - left > (0.9 if panels > 1 else 0.35) * picture.width  # three places a row
    assert bottom - top > 0.9 * picture.height
