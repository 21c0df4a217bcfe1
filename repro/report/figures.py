"""F6-F11 from records, with the intervals that verdicts use; what was not measured is left out."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from repro.cards import Look
from repro.report.facts import DatasetFacts, Methods
from repro.report.figure_layout import Drawing, Figure, Line
from repro.report.style import COLUMN_INCHES, GREY, PAGE_INCHES, figure_style, mixed, new_figure, save
from repro.report.tables import rounded
from repro.results.intervals import Mean
from repro.results.store import Reading, Results, Way

PALE, MEDIUM = 0.4, 0.7  # strengths of colour
NEARLY_NONE = 0.5  # percent: where a curve may end
ASIDE = 0.16  # of a way: from one line's points to the next one's


def draw_figures(figures: Sequence[Figure], results: Results, methods: Methods, folder: Path) -> None:
    """Write every figure as vector PDF and PNG into `folder`."""
    with figure_style():
        for figure in figures:
            save(draw(figure, results, methods), folder, figure.name)


def draw(figure: Figure, results: Results, methods: Methods) -> Any:
    """One figure, drawn as its layout says."""
    return _DRAWN[figure.drawing](figure, results, methods)


def _label(line: Line, methods: Methods) -> str:
    return line.label or methods.label(line.cell.method) + (" (added)" if line.ours else "")


def _points(figure: Figure, line: Line, measure: str, results: Results) -> list[tuple[Way, Mean]]:
    readings = [(way, Reading(line.cell, figure.protocol, way, measure)) for way in figure.ways]
    return [(way, found) for way, reading in readings if (found := results.estimate(reading))]


def _say_if_empty(axes: Any, measured: object) -> None:
    if not measured:
        axes.text(0.5, 0.5, "no records yet", ha="center", va="center", transform=axes.transAxes)


# A bar: its label, colour, strength of it, height of the row it stands in, and its number.
Bar = tuple[str, str, float, float, Mean]


def _bars(axes: Any, bars: list[Bar], thickness: float) -> None:
    """Horizontal bars with intervals and their numbers beside them."""
    for _, color, strength, place, found in bars:
        axes.barh(place, found.mean, thickness, color=mixed(color, strength), linewidth=0)
        axes.errorbar(found.mean, place, xerr=found.shown, color="black", capsize=1.5, linewidth=0.8)
        axes.text(found.mean + found.shown + 1, place, rounded(found.mean), va="center", fontsize=6)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_axisbelow(True)
    longest = max((found.mean + found.shown for *_, found in bars), default=100.0)
    axes.set_xlim(0, 1.22 * longest)  # the numbers are beside them
    _say_if_empty(axes, bars)


def _calibration(figure: Figure, results: Results, methods: Methods) -> Any:
    """Two bars per method: pale before calibration, full after."""
    from matplotlib.patches import Patch

    canvas, (axes,) = new_figure(COLUMN_INCHES, 0.6 + 0.3 * len(figure.lines))
    lines = [line for line in figure.lines if _points(figure, line, "hm", results)]
    bars = [
        ("", methods.look(line.cell.method).color, strength, place + offset, found)
        for place, line in enumerate(lines)
        for offset, measure, strength in ((-0.19, "hm", PALE), (0.19, "cal_hm", 1.0))
        for _, found in _points(figure, line, measure, results)
    ]
    _bars(axes, bars, 0.36)
    axes.set_yticks(range(len(lines)), [_label(line, methods) for line in lines])
    axes.set_xlabel("HM (%)")
    swatches = [Patch(color=mixed(GREY, PALE), label="as trained"), Patch(color=mixed(GREY), label="calibrated")]
    canvas.legend(handles=swatches, loc="outside upper center", ncols=2, frameon=False)
    return canvas


def _curves(figure: Figure, results: Results, methods: Methods) -> Any:
    """A panel per number of ways: seen against unseen accuracy, the area in the legend below."""
    canvas, panels = new_figure(PAGE_INCHES, 2.9 + 0.13 * len(figure.lines), panels=len(figure.ways))
    for axes, way in zip(panels, figure.ways, strict=True):
        drawn = []
        for line in figure.lines:
            curve = results.curve(line.cell, way)
            area = results.estimate(Reading(line.cell, figure.protocol, way, "ausuc"))
            if curve is not None and area is not None:
                look = methods.look(line.cell.method)
                label = f"{_label(line, methods)} ({rounded(area.mean)} ± {rounded(area.shown)})"
                drawn += axes.plot(*curve, color=look.color, linestyle=look.line, label=label)
        axes.set_title(f"{results.ways(figure.dataset, way) or way} unseen classes")
        axes.set_xlabel("U→S∪U (%)")
        axes.set_ylabel("S→S∪U (%)")
        if drawn:
            ends = [x[y > NEARLY_NONE].max(initial=0.0) for x, y in (one.get_data() for one in drawn)]
            axes.set_xlim(0, max(ends))
            axes.legend(
                title="method (AUSUC, %)",
                title_fontsize=7,
                fontsize=6,
                loc="upper center",
                bbox_to_anchor=(0.5, -0.16),
                frameon=False,
                handlelength=3.0,
            )
        _say_if_empty(axes, drawn)
    return canvas


def _line(axes: Any, look: Look, label: str, points: Sequence[tuple[float, Mean]]) -> None:
    """One line with intervals."""
    axes.errorbar(
        [x for x, _ in points],
        [found.mean for _, found in points],
        yerr=[found.shown for _, found in points],
        color=look.color,
        marker=look.marker,
        linestyle=look.line,
        label=label,
        capsize=1.5,
        elinewidth=0.7,
    )


def _sweep(figure: Figure, results: Results, methods: Methods) -> Any:
    """A line per method over the number of unseen classes."""
    canvas, (axes,) = new_figure(COLUMN_INCHES, 2.4 + 0.09 * len(figure.lines))
    (measure,) = figure.measures
    for place, line in enumerate(figure.lines):
        aside = ASIDE * (place - (len(figure.lines) - 1) / 2)  # so that intervals stand beside each other
        if points := [(int(way) + aside, found) for way, found in _points(figure, line, measure, results)]:
            _line(axes, methods.look(line.cell.method), _label(line, methods), points)
    drawn = axes.has_data()
    axes.set_xticks([int(way) for way in figure.ways])
    axes.set_xlabel("number of unseen classes")
    axes.set_ylabel("calibrated HM (%)" if measure.startswith("cal") else "HM (%)")
    if drawn:
        canvas.legend(loc="outside upper center", ncols=2, fontsize=6, frameon=False, columnspacing=1.0)
    _say_if_empty(axes, drawn)
    return canvas


def _dictionary(figure: Figure, results: Results, methods: Methods) -> Any:
    """Accuracy against the dictionary's size."""
    canvas, (axes,) = new_figure(COLUMN_INCHES, 2.4)
    points = [(int(line.label), found) for line in figure.lines for _, found in _points(figure, line, "u_u", results)]
    method = figure.lines[0].cell.method
    _line(axes, methods.look(method), methods.label(method), points)
    axes.set_xticks([size for size, _ in points])
    axes.set_xlabel("shared bases per seen class")
    axes.set_ylabel("U→U (%)")
    _say_if_empty(axes, points)
    return canvas


def _classifiers(figure: Figure, results: Results, methods: Methods) -> Any:
    """Three bars per method: prototypes, synthesised classifiers, many-shot classifiers."""
    words = {"proto_s": ("prototypes", PALE), "syn_s": ("synthesised", 1.0), "many_s": ("many-shot", MEDIUM)}
    canvas, (axes,) = new_figure(COLUMN_INCHES, 2.2)
    bars: list[Bar] = []
    for group, line in enumerate(figure.lines):
        for measure in figure.measures:
            for _, found in _points(figure, line, measure, results):
                word, strength = words[measure]
                color = methods.look(line.cell.method).color
                bars.append((f"{_label(line, methods)}, {word}", color, strength, len(bars) + 0.4 * group, found))
    _bars(axes, bars, 0.8)
    axes.set_yticks([place for _, _, _, place, _ in bars], [label for label, *_ in bars])
    axes.set_xlabel("S→S (%)")
    return canvas


_DRAWN: dict[Drawing, Callable[[Figure, Results, Methods], Any]] = {
    "calibration": _calibration,
    "curves": _curves,
    "sweep": _sweep,
    "dictionary": _dictionary,
    "classifiers": _classifiers,
}


def draw_samples(datasets: Sequence[DatasetFacts], folder: Path, name: str) -> None:
    """F5: a panel per dataset that brings samples, a row of images per domain."""
    shown = [facts for facts in datasets if facts.samples]
    rows = max((len(facts.samples) for facts in shown), default=3)
    with figure_style():
        canvas, panels = new_figure(PAGE_INCHES, 0.42 * rows + 0.3, panels=max(1, len(shown)))
        for axes, facts in zip(panels, shown, strict=False):
            montage_HWC, height = _montage(list(facts.samples.values()))
            axes.imshow(montage_HWC.squeeze(), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            middles = [height * (row + 0.5) for row in range(len(facts.samples))]
            axes.set_yticks(middles, list(facts.samples))
            axes.set_title(facts.title)
        for axes in panels:
            axes.grid(visible=False)
            axes.set_xticks([])
            axes.spines[:].set_visible(False)
            _say_if_empty(axes, shown)
        save(canvas, folder, name)


def _montage(rows_NHWC: list[np.ndarray]) -> tuple[np.ndarray, int]:
    """Images side by side, a row per domain, with white gaps; and the height of a row."""
    height, width, channels = rows_NHWC[0].shape[1:]
    gap = max(1, height // 14)
    columns = max(len(images_NHWC) for images_NHWC in rows_NHWC)
    shape = (len(rows_NHWC) * (height + gap) - gap, columns * (width + gap) - gap, channels)
    montage_HWC = np.full(shape, 255, dtype=np.uint8)
    for row, images_NHWC in enumerate(rows_NHWC):
        for column, image_HWC in enumerate(images_NHWC):
            top, left = row * (height + gap), column * (width + gap)
            montage_HWC[top : top + height, left : left + width] = image_HWC
    return montage_HWC, height + gap
