"""How figures look: readable at column width, free of any window system, the same bytes every time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.files import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMN_INCHES = 3.4
PAGE_INCHES = 7.0
PNG_DPI = 220

GREY = "#949494"


def mixed(color: str, strength: float = 1.0) -> tuple[float, float, float]:
    """A colour (hexadecimal); below strength 1 mixed with white."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1 - strength * (1 - part) for part in to_rgb(color))
    return red, green, blue


@contextmanager
def figure_style() -> Iterator[None]:
    """The rc settings of all figures: readable at column width, text kept as text in the PDF."""
    import matplotlib as mpl
    import seaborn as sns

    settings = {
        "font.size": 8,
        "axes.titlesize": 8,
        "axes.labelsize": 8,
        "legend.fontsize": 7,
        "xtick.labelsize": 7,
        "ytick.labelsize": 7,
        "lines.linewidth": 1.3,
        "lines.markersize": 4.5,
        "pdf.fonttype": 42,
        "figure.constrained_layout.use": True,
    }
    with mpl.rc_context():
        sns.set_theme(context="paper", style="whitegrid", font="DejaVu Sans", rc=settings)
        yield


def new_figure(width: float, height: float, panels: int = 1, rows: int = 1) -> tuple["Figure", list[Any]]:
    """A figure with `rows` rows of `panels` panels, free of any window system."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(rows, panels, squeeze=False).flat)


def save(figure: "Figure", folder: Path, name: str) -> None:
    """Write NAME.png and NAME.pdf; the same figure gives the same bytes."""
    with whole_file(folder / f"{name}.png") as file:
        figure.savefig(file, format="png", dpi=PNG_DPI, metadata={"Software": None})
    figure.set_layout_engine("none")  # laid out already
    with whole_file(folder / f"{name}.pdf") as file:
        figure.savefig(file, format="pdf", metadata={"CreationDate": None, "Producer": None, "Creator": None})
