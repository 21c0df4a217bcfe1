"""`python -m stages splits DATASET [--seed N]`: pack one dataset's images with a manifest and a contact sheet.

`croissant.json` describes the folder to others.
"""

import sys
from typing import Any

from repro import paths
from repro.data.dataset import HEADER, open_dataset
from repro.files import SEAL, add_to_seal, exclusive_folder, put_in_place, sha256
from repro.preparation.contact_sheet import write_contact_sheet
from repro.preparation.croissant import CROISSANT, write_croissant
from repro.preparation.preparing import prepare
from stages.origins import write_origin
from stages.settings.files import read_settings
from stages.settings.kinds import SplitsSettings
from stages.tracking import Log, bad_input_exits, bar, counting, of_seed, record

SHEET = "contact_sheet.png"


def splits(settings: SplitsSettings, log: Log) -> dict[str, Any]:
    """Render or decode the images, then draw the contact sheet and describe the dataset."""
    folder = paths.dataset(settings.dataset, settings.seed)
    unfinished = folder.with_name(f".{folder.name}.unfinished")
    with exclusive_folder(paths.checkpoints(f"splits-{settings.dataset}", settings.seed)):
        with bar(settings.dataset, 0, "image") as shown:
            prepare(
                settings.source,
                settings.dataset,
                unfinished,
                size=settings.size,
                seed=settings.seed,
                options=settings.options,
                workers=settings.machine.workers or None,
                progress=counting(shown),
            )
        packed = open_dataset(unfinished)
        write_contact_sheet(unfinished / SHEET, packed)
        write_croissant(unfinished, packed)
        for name in (SHEET, CROISSANT):
            add_to_seal(unfinished, name)
        made = write_origin(unfinished, "splits", settings.dataset, settings, sha256(unfinished / SEAL))
        put_in_place(unfinished, folder)
    for name in (SHEET, HEADER):
        log.add_artifact(str(folder / name), name=name)
    images = {role: len(rows) for role, rows in packed.roles.items()}
    print(f"{settings.dataset}: {', '.join(f'{number} {role}' for role, number in images.items())}")
    return {**images, **made}


if __name__ == "__main__":
    with bad_input_exits():
        settings = read_settings(SplitsSettings, sys.argv[1:])
    record(splits, settings, stage="splits", cell=of_seed(settings.dataset, settings.seed))
