"""One way to a dataset's folder for every source, drawn or brought by the user."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from repro.data.dataset import write_dataset
from repro.errors import BadInput
from repro.options import check_options
from repro.preparation.glyphs import render_glyphs
from repro.preparation.packing import pack
from repro.preparation.sources import SOURCES, check_source_options, collect

RENDERERS = {"glyphs": render_glyphs}  # sources that draw their images; the others list files to decode


def prepare(
    source: str,
    name: str,
    folder: Path,
    *,
    size: int,
    seed: int,
    options: Mapping[str, Any],
    workers: int | None,
    progress: Callable[[int, int], None],
) -> None:
    """Write the dataset `name` to a folder; `options` are the source's named arguments. Raises BadInput."""
    check_source(source, options)
    if source in RENDERERS:
        write_dataset(folder, *RENDERERS[source](seed=seed, size=size, **options))
    else:
        pack(collect(source, name, seed, options), folder, size=size, workers=workers, progress=progress)


def check_source(source: str, options: Mapping[str, Any]) -> None:
    """Raise BadInput for a source there is not, and for options that it does not have."""
    if source in RENDERERS:
        check_options(f"source {source}", options, RENDERERS[source], given=("seed", "size"))
    elif source in SOURCES:
        check_source_options(source, options)
    else:
        raise BadInput(f"source is {source!r}, expected one of {', '.join([*RENDERERS, *SOURCES])}")
