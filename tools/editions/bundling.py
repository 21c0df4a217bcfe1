"""An edition as one archive: an RO-Crate with the edition's files and DVC's copies of what its run made."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rocrate.rocrate import ROCrate

from repro.editions.edition import Edition
from repro.errors import BadInput
from repro.files import sha256, whole_file
from stages.settings.grid import read_grid_file
from stages.settings.params import read_params
from tools.dvc_doctor import Cache, local_cache, md5_of, read_outputs, stage_groups

EDITION, OBJECTS, SUMS, METADATA = "edition", "objects", "SHA256SUMS", "ro-crate-metadata.json"
IN_GIT = ("paper",)  # outputs that DVC does not keep
DRAWN = ("glyphs",)  # sources whose images this code draws: they may be passed on


def write_bundle(edition: Edition, file: Path, *, models: bool) -> int:
    """Write the archive; gives how many of DVC's objects are in it: none of a joined edition, as no workspace has all.

    Raises BadInput where one is missing or damaged, or models of a joined edition are asked for.
    """
    if edition.about.joined and models:
        message = f"the seeds {'; '.join(edition.about.joined)} of {edition.name} were run apart"
        message = f"{message}, so no workspace has all models, expected no --models"
        raise BadInput(f"{message}; bundle its parts where they were run")
    copies = local_cache()
    objects = {} if edition.about.joined else dict.fromkeys(_objects(edition, copies, models))
    files = {
        f"{EDITION}/{path.relative_to(edition.folder).as_posix()}": path
        for path in sorted(edition.folder.rglob("*"))
        if path.is_file()
    }
    files |= {f"{OBJECTS}/{name[:2]}/{name[2:]}": copies.place(name) for name in objects}
    crate = ROCrate()
    crate.name = f"Edition {edition.name}"
    crate.description = f"{edition.about.benchmark}. {edition.summary()} Kept at commit {edition.about.commit}."
    crate.license = "https://spdx.org/licenses/MIT"
    with tempfile.TemporaryDirectory() as folder, whole_file(file) as partial:
        sums = Path(folder) / SUMS
        lines = [f"{sha256(path)}  {name}\n" for name, path in files.items()]
        sums.write_text("".join(lines), encoding="utf-8")
        for name, path in {**files, SUMS: sums}.items():
            crate.add_file(path, name, properties={"contentSize": str(path.stat().st_size)})
        shutil.move(crate.write_zip(Path(folder) / "bundle.zip"), partial)
    return len(objects)


def _objects(edition: Edition, copies: Cache, models: bool) -> Iterator[str]:
    """The contents behind the edition's lock that DVC keeps, folders and the files in them."""
    datasets = read_params(edition.folder / "params.yaml").datasets
    sources = [dataset.source for dataset in datasets.values()]
    left_out = {*IN_GIT, *([] if models else ["models"]), *([] if set(sources) <= set(DRAWN) else ["data"])}
    groups, names = stage_groups(), {"", *datasets, *read_grid_file(edition.folder / "grid.yaml").lines()}
    for output in read_outputs(edition.folder / "dvc.lock", edition.folder / "evaluate.lock").values():
        group, name = output.group_and_name
        is_gone = group not in groups or name not in names  # DVC forgets no stage that it ever ran
        if is_gone or output.path.parts[0] in left_out or output.path.name == "metrics.json":
            continue
        yield _sound(copies, output.md5, output.path)
        yield from (_sound(copies, md5, path) for path, md5 in copies.files_of(output).items())


def _sound(copies: Cache, md5: str, path: Path) -> str:
    """The name of a copy, after a look at it."""
    file = copies.place(md5)
    if not file.is_file():
        raise BadInput(f"DVC has no copy of {path}, expected what the edition's run made; run `tools/repro` for it")
    if md5_of(file) != md5.removesuffix(".dir"):
        raise BadInput(f"{file}: DVC's copy of {path} is damaged; `tools/doctor --results` says how to restore it")
    return md5
