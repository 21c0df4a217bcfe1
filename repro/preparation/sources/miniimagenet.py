"""MiniImageNet (Vinyals et al.; split of Ravi and Larochelle) from ILSVRC-12, or from the copy that is passed around.

`train.csv`, `val.csv` and `test.csv` name 600 images of each of 64, 16 and 20 classes (see mini_lists). With ILSVRC-12
the augmented seen images are drawn from its rest, or follow the released `aux_val.csv` and `aux_test.csv`; with the
copy alone they are held out of the 600 (see mini_copy).
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal

from repro.data.dataset import ClassInfo
from repro.errors import BadInput
from repro.preparation.augmented_seen import ExtraVariant, Halves, among_training, cleaned, draw_extra, merge_halves
from repro.preparation.collection import Collection, Picture, gather
from repro.preparation.images import RawImage, shared_contents
from repro.preparation.listing import files_below, image_file
from repro.preparation.sources.ilsvrc import LISTS, Catalogue, is_ilsvrc, read_classes, training_folder
from repro.preparation.sources.mini_copy import Copy, deal_held_out
from repro.preparation.sources.mini_lists import EXPECTED, FileList, check_lists, find_lists, read_list


def collect(
    name: str,
    seed: int,
    *,
    root: str | Path | Sequence[str | Path],
    lists: str | Path | None = None,
    extra: Literal["drawn", "published", "clean", "held_out"] | None = None,
    held_out: Sequence[int] = (60, 60),
    images: str | Path | None = None,
    per_class: int = 600,
    extra_per_half: int = 200,
    classes: str | Path = LISTS / "miniimagenet.tsv",
) -> Collection:
    """List MiniImageNet. Raises BadInput.

    root: ILSVRC-12's training folder, or MiniImageNet as it is passed around: a folder, a .tar, .tar.gz or .zip, or a
        list of them, flat or with a folder per class
    lists: folder of train.csv, val.csv and test.csv (or .json); by default looked for below the root
    extra: further images of the seen classes: drawn (from the rest of ILSVRC-12), published (exactly aux_*.csv), clean
        (those without training images) or held_out (of the listed images); by default drawn where the root is
        ILSVRC-12, else held_out
    held_out: [seen_val, seen_test] images of each seen class that held_out takes from training
    images: with ILSVRC-12 as root: a folder of MiniImageNet's own files, from which the listed images are taken
    per_class: images that the lists must name of every class
    extra_per_half: images of each seen class that drawn gives to seen_val, and to seen_test
    classes: table of the classes with their splits, another one for another split
    """
    roots = [Path(each) for each in ([root] if isinstance(root, str | Path) else root)]
    infos = read_classes(Path(classes), {"name": "wnid"})
    if len(roots) != 1 or not is_ilsvrc(roots[0], [info.name for info in infos], per_class):
        return _from_copy(name, seed, roots, lists, infos, extra=extra, held_out=held_out, per_class=per_class)
    if lists is None:
        raise BadInput(
            f"{roots[0]}: is ILSVRC-12 and no lists are given, expected {EXPECTED}; give their folder as `lists`"
        )
    lists, extra = Path(lists), extra or "drawn"
    base = _read_lists(lists, infos, per_class)
    catalogue = Catalogue(training_folder(roots[0]), [info.name for info in infos])
    found = {role: catalogue.find(listed) for role, listed in base.items()}
    given = found if images is None else {role: _named_as_listed(Path(images), listed) for role, listed in base.items()}
    facts = {"source": "miniimagenet", "seed": seed, "naming": base["train"].naming, "extra": extra}
    if extra == "held_out":
        pictures, more = deal_held_out(infos, base, given, held_out=held_out, seed=seed)
        return gather(name, infos, pictures, provenance=facts | more)
    seen = [info.name for info in infos if info.split == "seen"]
    published = _published(lists, catalogue, seen) if extra != "drawn" or (lists / "aux_test.csv").exists() else None
    candidates = {each: catalogue.ranked[each] for each in seen} if extra == "drawn" else {}
    halves, overlap = _augment(extra, found["train"], published, candidates, per_half=extra_per_half, seed=seed)
    pictures = [
        Picture(raw, class_id, role)
        for role, listed in base.items()
        for raw, (_, class_id) in zip(given[role], listed.rows, strict=True)
    ]
    for role, members in halves.by_role().items():
        pictures += [Picture(raw, raw.source.partition("/")[0], role) for raw in members]
    return gather(name, infos, pictures, provenance=facts | overlap)


def _from_copy(
    name: str,
    seed: int,
    roots: Sequence[Path],
    lists: str | Path | None,
    infos: list[ClassInfo],
    *,
    extra: str | None,
    held_out: Sequence[int],
    per_class: int,
) -> Collection:
    """MiniImageNet from its own images alone."""
    copy = Copy(roots)
    if extra not in (None, "held_out"):
        message = f"{copy.where}: holds no more than MiniImageNet's own images, and extra is {extra}"
        raise BadInput(f"{message}, expected ILSVRC-12's training images for it; or leave extra out to hold images out")
    if lists is None:
        base = find_lists(copy.files, copy.where)
        check_lists(base, {info.name: info.split for info in infos}, per_class)
    else:
        base = _read_lists(Path(lists), infos, per_class)
    found = {role: copy.find(listed) for role, listed in base.items()}
    pictures, facts = deal_held_out(infos, base, found, held_out=held_out, seed=seed)
    about = {"source": "miniimagenet", "seed": seed, "naming": base["train"].naming, "root": "passed-around copy"}
    return gather(name, infos, pictures, provenance=about | facts | copy.unlisted(base.values()))


def _read_lists(folder: Path, infos: Sequence[ClassInfo], per_class: int) -> dict[str, FileList]:
    base = find_lists(files_below(folder, EXPECTED), folder)
    check_lists(base, {info.name: info.split for info in infos}, per_class)
    return base


def _augment(
    extra: ExtraVariant,
    train: list[RawImage],
    published: Halves[RawImage] | None,
    candidates: Mapping[str, Sequence[RawImage]],
    *,
    per_half: int,
    seed: int,
) -> tuple[Halves[RawImage], dict[str, int]]:
    """Choose the augmented seen images, and count the published ones and those of them that are training images."""
    listed = [*published.seen_val, *published.seen_test] if published else []
    # A dictionary keeps each image once: the same file may be a candidate and a listed one.
    content = shared_contents(list(dict.fromkeys([*train, *chain(*candidates.values()), *listed])))
    overlap = {"extra_listed": len(listed), "extra_among_training": len(among_training(listed, train, content))}
    if extra == "drawn":
        return merge_halves(
            draw_extra(candidates, train, content, sizes=(per_half, per_half), seed=seed).values()
        ), overlap
    assert published is not None
    return (cleaned(published, train, content) if extra == "clean" else published), overlap


def _published(lists: Path, catalogue: Catalogue, seen: Sequence[str]) -> Halves[RawImage]:
    """The augmented seen images that the released lists name. Raises BadInput."""
    halves = {half: read_list(lists / f"aux_{half}.csv") for half in ("val", "test")}
    for listed in halves.values():
        strange = sorted({class_id for _, class_id in listed.rows} - set(seen))
        if strange:
            raise BadInput(f"{listed.place}: names class {strange[0]}, expected seen classes only")
    return Halves(seen_val=catalogue.find(halves["val"]), seen_test=catalogue.find(halves["test"]))


def _named_as_listed(images: Path, listed: FileList) -> list[RawImage]:
    """The files of a list in a folder that holds them under the list's names, with or without class folders."""
    in_classes = (images / listed.rows[0][1]).is_dir()
    return [
        image_file(images / class_id / filename if in_classes else images / filename, images, listed.place)
        for filename, class_id in listed.rows
    ]
