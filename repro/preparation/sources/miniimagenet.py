"""MiniImageNet (Vinyals et al.; split of Ravi and Larochelle) from ILSVRC-12 and the published file lists.

`train.csv`, `val.csv` and `test.csv` name 600 images of each of 64, 16 and 20 classes (see mini_lists). The augmented
seen images are drawn from the rest of ILSVRC-12, or follow the released `aux_val.csv` and `aux_test.csv`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from repro.errors import BadInput
from repro.preparation.augmented_seen import ExtraVariant, Halves, among_training, cleaned, draw_extra, joined
from repro.preparation.collection import Collection, Picture, gather
from repro.preparation.images import RawImage, shared_contents
from repro.preparation.listing import image_file
from repro.preparation.sources.ilsvrc import LISTS, read_classes, training_folder
from repro.preparation.sources.mini_lists import Catalogue, FileList, read_list
from repro.preparation.splits import check_disjoint

LIST_OF_ROLE = {"train": "train.csv", "val": "val.csv", "test": "test.csv"}
SPLIT_OF_LIST = {"train.csv": "seen", "val.csv": "val", "test.csv": "test"}


def collect(
    name: str,
    seed: int,
    *,
    root: str | Path,
    lists: str | Path,
    extra: ExtraVariant = "drawn",
    images: str | Path | None = None,
    per_class: int = 600,
    extra_per_half: int = 200,
    classes: str | Path = LISTS / "miniimagenet.tsv",
) -> Collection:
    """List MiniImageNet. `root` is ILSVRC-12's training folder, `lists` the folder of the CSV files.

    `extra` is drawn (`extra_per_half` images per seen class for either half), published (exactly `aux_*.csv`) or clean
    (those lists without images whose content is among the training images). With `images`, a folder of MiniImageNet
    as it is passed around (files named as in the lists), the 600 come from there. Raises BadInput.
    """
    folder, lists = training_folder(Path(root)), Path(lists)
    infos = read_classes(Path(classes), {"name": "wnid"})
    base = {role: read_list(lists / file) for role, file in LIST_OF_ROLE.items()}
    _check_lists(base.values(), {info.name: info.split for info in infos}, per_class)
    catalogue = Catalogue(folder, [info.name for info in infos])
    found = {role: catalogue.find(listed) for role, listed in base.items()}
    seen = [info.name for info in infos if info.split == "seen"]
    published = _published(lists, catalogue, seen) if extra != "drawn" or (lists / "aux_test.csv").exists() else None
    candidates = {each: catalogue.ranked[each] for each in seen} if extra == "drawn" else {}
    halves, overlap = _augment(extra, found["train"], published, candidates, per_half=extra_per_half, seed=seed)
    given = found if images is None else {role: _named_as_listed(Path(images), listed) for role, listed in base.items()}
    pictures = [
        Picture(raw, class_id, role)
        for role, listed in base.items()
        for raw, (_, class_id) in zip(given[role], listed.rows, strict=True)
    ]
    for role, members in halves.by_role().items():
        pictures += [Picture(raw, raw.source.partition("/")[0], role) for raw in members]
    facts = {"source": "miniimagenet", "seed": seed, "naming": base["train"].naming, "extra": extra}
    return gather(name, infos, pictures, provenance=facts | overlap)


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
        return joined(draw_extra(candidates, train, content, per_half=per_half, seed=seed).values()), overlap
    assert published is not None
    return (cleaned(published, train, content) if extra == "clean" else published), overlap


def _published(lists: Path, catalogue: Catalogue, seen: Sequence[str]) -> Halves[RawImage]:
    """The augmented seen images that the released lists name. Raises BadInput."""
    halves = {half: read_list(lists / f"aux_{half}.csv") for half in ("val", "test")}
    for listed in halves.values():
        strange = sorted({class_id for _, class_id in listed.rows} - set(seen))
        if strange:
            raise BadInput(f"{listed.file}: names class {strange[0]}, expected seen classes only")
    return Halves(seen_val=catalogue.find(halves["val"]), seen_test=catalogue.find(halves["test"]))


def _named_as_listed(images: Path, listed: FileList) -> list[RawImage]:
    """The files of a list in a folder that holds them under the list's names, with or without class folders."""
    in_classes = (images / listed.rows[0][1]).is_dir()
    return [
        image_file(images / class_id / filename if in_classes else images / filename, images, listed.file)
        for filename, class_id in listed.rows
    ]


def _check_lists(base: Iterable[FileList], split_of: Mapping[str, str], per_class: int) -> None:
    """Every list names the classes of its split, each with `per_class` files, and no file twice. Raises BadInput."""
    base = list(base)
    check_disjoint({listed.file.name: [filename for filename, _ in listed.rows] for listed in base})
    for listed in base:
        counts = Counter(class_id for _, class_id in listed.rows)
        split = SPLIT_OF_LIST[listed.file.name]
        expected = {class_id for class_id, each in split_of.items() if each == split}
        for class_id in sorted(expected ^ set(counts)):
            seen = f"names class {class_id}" if class_id in counts else f"does not name class {class_id}"
            raise BadInput(f"{listed.file}: {seen}, expected exactly the {len(expected)} {split} classes")
        for class_id, count in counts.items():
            if count != per_class:
                raise BadInput(f"{listed.file}: names {count} images of class {class_id}, expected {per_class}")
