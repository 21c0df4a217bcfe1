"""The files of every figure: diagrams as TikZ and SVG, samples and plots as PDF and PNG."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from repro.report.diagrams import as_svg, as_tikz, read_scene
from repro.report.facts import DatasetFacts, Methods, fill
from repro.report.figure_layout import DIAGRAMS, SAMPLES_DATASETS, SAMPLES_KEY, SAMPLES_TITLE, Figure
from repro.report.html import FigureView
from repro.report.templates import write_page
from repro.results.store import Results

DIAGRAM_DATASET = "mini"


def write_diagrams(
    datasets: Mapping[str, DatasetFacts], templates: Path, folder: Path, way: int, query: int
) -> list[FigureView]:
    """F1-F4 as TikZ and SVG files; none where their dataset is not at hand."""
    if DIAGRAM_DATASET not in datasets:
        return []
    views = []
    for key, words in DIAGRAMS.items():
        title = fill(words, DIAGRAM_DATASET, datasets)
        scene = read_scene(templates, key, datasets[DIAGRAM_DATASET], way, query)
        write_page(folder / f"{key}.tex", as_tikz(templates, scene))
        write_page(folder / f"{key}.svg", as_svg(templates, scene, title))
        views.append(FigureView(key, key, title, "tikz", True, folder / f"{key}.svg"))
    return views


def write_pictures(
    drawn: Sequence[Figure], results: Results, datasets: Mapping[str, DatasetFacts], methods: Methods, folder: Path
) -> list[FigureView]:
    """F5-F11 as PDF and PNG files."""
    from repro.report.figures import draw_figures, draw_samples

    name = f"{SAMPLES_KEY}_samples"
    draw_samples([datasets[dataset] for dataset in SAMPLES_DATASETS if dataset in datasets], folder, name)
    draw_figures(drawn, results, methods, folder)
    samples = FigureView(SAMPLES_KEY, name, SAMPLES_TITLE, "image", True, folder / f"{name}.png")
    return [
        samples,
        *(
            FigureView(
                figure.key,
                figure.name,
                fill(figure.title, figure.dataset, datasets),
                "image",
                figure.wide,
                folder / f"{figure.name}.png",
                tuple(dict.fromkeys(reading.cell.name for reading in figure.readings())),
            )
            for figure in drawn
        ),
    ]
