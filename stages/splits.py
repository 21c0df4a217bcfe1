"""`python -m stages splits DATASET`: pack one dataset's images with a manifest and a contact sheet."""

import sys
from pathlib import Path
from typing import Any

from repro import paths
from repro.data.dataset import HEADER, open_dataset, write_dataset
from repro.files import claimed
from repro.options import check_options
from repro.preparation.contact_sheet import write_contact_sheet
from repro.preparation.glyphs import render_glyphs
from repro.preparation.packing import pack
from repro.preparation.sources import collect
from stages._arguments import the_name
from stages._experiment import Experiment, Run, bad_input_exits, prepare, run
from stages._params import read_params
from stages._progress import bar, counting

GLYPHS = "glyphs"
ex = prepare(Experiment("splits"))


@ex.main
def splits(
    dataset: str, source: str, size: int, options: dict[str, Any], workers: int, seed: int, _run: Run
) -> dict[str, int]:
    """Render the embedded benchmark or decode raw images, then draw the contact sheet."""
    folder = paths.dataset(dataset)
    with claimed(paths.checkpoints(f"splits-{dataset}")):
        if source == GLYPHS:
            check_options(f"source {GLYPHS}", options, render_glyphs, given=("seed", "size"))
            write_dataset(folder, *render_glyphs(seed=seed, size=size, **options))
        else:
            decode(folder, source, size, options, workers, seed)
        packed = open_dataset(folder)
        sheet = folder / "contact_sheet.png"
        write_contact_sheet(sheet, packed)
    for file in (sheet, folder / HEADER):
        _run.add_artifact(str(file), name=file.name)
    return {role: len(rows) for role, rows in packed.roles.items()}


def decode(folder: Path, source: str, size: int, options: dict[str, Any], workers: int, seed: int) -> None:
    """Pack a raw dataset that the user brought."""
    collection = collect(source, folder.name, seed, options)
    with bar(f"decode {folder.name}", len(collection.pictures), "image") as shown:
        pack(collection, folder, size=size, workers=workers or None, progress=counting(shown))


if __name__ == "__main__":
    with bad_input_exits():
        params = read_params(paths.PARAMS)
        name = the_name(sys.argv, "dataset", params.datasets)
        config = params.datasets[name].model_dump() | {"seed": params.seed, "workers": params.machine.workers}
    run(ex, {"dataset": name, **config}, stage="splits", cell=name)
