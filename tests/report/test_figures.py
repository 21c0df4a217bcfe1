"""Figures: what is drawn is what was recorded, in one colour per method, readable at column width."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Text

from repro.report.facts import DEFAULT_LOOKS
from repro.report.figure_layout import FIGURES
from repro.report.figures import draw, draw_samples
from repro.report.style import COLUMN_INCHES, PAGE_INCHES, figure_style, mixed
from repro.results.store import Reading, Results
from tests.report.conftest import CARDS, DATASETS, KNOWN, MISSING, Paper
from tests.report.synthetic import UNSEEN

BY_KEY = {figure.key: figure for figure in FIGURES}


@pytest.fixture
def results(paper: Paper) -> Results:
    return Results(paper.results, UNSEEN)


def drawn(key: str, results: Results, rows: Sequence[str] = ()):  # type: ignore[no-untyped-def]
    with figure_style():
        canvas = draw(BY_KEY[key].with_rows(rows), results, KNOWN)
        canvas.draw_without_rendering()
    return canvas


@pytest.mark.parametrize("key", ["F8", "F9"])
def test_lines_pass_through_the_recorded_means(key: str, results: Results) -> None:
    figure, (axes,) = BY_KEY[key], drawn(key, results).axes
    measured = [line for line in figure.lines if line.cell.name != MISSING]
    assert len(axes.containers) == len(measured)
    for line, container in zip(measured, axes.containers, strict=True):
        readings = [Reading(line.cell, "gfsl", way, figure.measures[0]) for way in figure.ways]
        means = [found.mean for reading in readings if (found := results.estimate(reading))]
        np.testing.assert_allclose(np.asarray(container.lines[0].get_ydata(), float), means)
        assert container.has_yerr
        assert container.lines[0].get_color() == KNOWN.look(line.cell.method).color


def test_bars_are_as_long_as_the_recorded_means(results: Results) -> None:
    figure, (axes,) = BY_KEY["F6"], drawn("F6", results).axes
    readings = [
        Reading(line.cell, "gfsl", 5, measure)
        for line in figure.lines
        if line.cell.name != MISSING
        for measure in ("hm", "cal_hm")
    ]
    widths = [patch.get_width() for patch in axes.patches]
    np.testing.assert_allclose(widths, [found.mean for reading in readings if (found := results.estimate(reading))])


@pytest.mark.parametrize("key", BY_KEY)
def test_text_is_readable_at_its_printed_width(key: str, results: Results) -> None:
    canvas = drawn(key, results)
    assert canvas.get_size_inches()[0] in (COLUMN_INCHES, PAGE_INCHES)
    sizes = [text.get_fontsize() for text in canvas.findobj(Text) if text.get_text().strip() and text.get_visible()]
    assert min(sizes) >= 6


@pytest.mark.parametrize("key", BY_KEY)
def test_a_figure_without_records_says_so(key: str, tmp_path: Path) -> None:
    words = [text.get_text() for text in drawn(key, Results(tmp_path, UNSEEN)).findobj(Text)]
    assert "no records yet" in words


def test_methods_differ_in_colour_and_in_marker_or_dash() -> None:
    looks = [*(card.look for card in CARDS.values() if card.look), *DEFAULT_LOOKS]
    assert len(looks) > 10
    for first, second in combinations(looks, 2):
        assert np.abs(np.subtract(mixed(first.color), mixed(second.color))).max() > 0.1
        assert (first.marker, first.line) != (second.marker, second.line)
    assert mixed("#d55e00", 0.0) == (1.0, 1.0, 1.0)


def test_sample_images_are_shown_per_domain(tmp_path: Path) -> None:
    draw_samples(list(DATASETS.values()), tmp_path, "with")
    draw_samples([], tmp_path, "without")
    assert (tmp_path / "with.pdf").read_bytes().count(b"/Subtype /Image") == 2
    assert (tmp_path / "without.pdf").read_bytes().count(b"/Subtype /Image") == 0


@pytest.mark.parametrize("key", BY_KEY)
def test_all_that_is_written_lies_inside_the_picture(key: str, results: Results) -> None:
    """Also with the rows of ours in it, whose names are the longest."""
    canvas = drawn(key, results, ["l2ml_plus", "nearest_mean", "teen"])
    inked, (width, height) = canvas.get_tightbbox(), canvas.get_size_inches()
    assert inked.width > 0.8 * width
    assert min(inked.x0, inked.y0, width - inked.x1, height - inked.y1) > -0.01
    legends = [axes.get_legend().get_window_extent() for axes in canvas.axes if axes.get_legend()]
    assert not any(first.overlaps(second) for first, second in combinations(legends, 2))
