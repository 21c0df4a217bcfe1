"""How figures look: one colour, marker and dash per method everywhere, for colour-blind readers and for grey print."""

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

# Method → place in seaborn's colour-blind palette, marker and dashes, which tell methods apart without colour.
_LOOKS = {
    "mc_knn": (7, "v", ":"),
    "mc_protonet": (9, "^", ":"),
    "protonet": (1, "s", "--"),
    "l2ml": (2, "P", "-."),
    "dfsl": (0, "D", "--"),
    "ifsl": (5, "X", "-."),
    "castle": (3, "o", "-"),
    "acastle": (4, "*", "-"),
}
MARKERS = {method: marker for method, (_, marker, _) in _LOOKS.items()}
DASHES = {method: dashes for method, (_, _, dashes) in _LOOKS.items()}


def colour(method: str, strength: float = 1.0) -> tuple[float, float, float]:
    """The colour of one method in every figure; below strength 1 mixed with white."""
    import seaborn as sns

    red, green, blue = (1 - strength * (1 - part) for part in sns.color_palette("colorblind")[_LOOKS[method][0]])
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


def new_figure(width: float, height: float, panels: int = 1) -> tuple["Figure", list[Any]]:
    """A figure with panels side by side, free of any window system."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(1, panels, squeeze=False)[0])


def save(figure: "Figure", folder: Path, name: str) -> None:
    """Write NAME.png and NAME.pdf; the same figure gives the same bytes."""
    with whole_file(folder / f"{name}.png") as file:
        figure.savefig(file, format="png", dpi=PNG_DPI, metadata={"Software": None})
    figure.set_layout_engine("none")  # laid out already
    with whole_file(folder / f"{name}.pdf") as file:
        figure.savefig(file, format="pdf", metadata={"CreationDate": None, "Producer": None, "Creator": None})
