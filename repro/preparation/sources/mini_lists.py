"""MiniImageNet's published file lists, in all forms and both namings.

A list names images either by ILSVRC's own names (`n01532829_13061.JPEG`), or by a counter (`n0153282900000005.jpg`):
the image's rank within its class, counted from 1 in the order of ILSVRC's numbers. It is a CSV with the columns
filename and label, or a JSON: file name → label, or `label_names`, `image_names` and `image_labels`.
"""

import json
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.errors import BadInput, one_line
from repro.preparation.archives import Member
from repro.preparation.images import read_origin
from repro.preparation.listing import parse_rows
from repro.preparation.splits import check_disjoint

NAMINGS = {
    "ilsvrc": re.compile(r"(n\d{8})_(\d+)\.(?:jpe?g|png)", re.IGNORECASE),
    "counter": re.compile(r"(n\d{8})(\d{8})\.(?:jpe?g|png)", re.IGNORECASE),
}
LISTS_OF_ROLE = {
    "train": ("train.csv", "train.json", "base.json"),
    "val": ("val.csv", "val.json"),
    "test": ("test.csv", "test.json", "novel.json"),
}
SPLIT_OF_ROLE = {"train": "seen", "val": "val", "test": "test"}
EXPECTED = "the lists train.csv, val.csv and test.csv (or .json) of MiniImageNet"


@dataclass(frozen=True)
class FileList:
    """A published list: what users call it, its naming (a key of NAMINGS) and its (file name, class) rows."""

    place: str
    naming: str
    rows: list[tuple[str, ...]]


def find_lists(files: Mapping[str, Path | Member], where: object) -> dict[str, FileList]:
    """The three lists among these files: role → list, all from the uppermost folder that has them. Raises BadInput."""
    folders = sorted({posixpath.dirname(path) for path in files}, key=lambda folder: (folder.count("/"), folder))
    for folder in folders:
        found = {
            role: next((files[path] for name in names if (path := posixpath.join(folder, name)) in files), None)
            for role, names in LISTS_OF_ROLE.items()
        }
        missing = [role for role, file in found.items() if file is None]
        if len(missing) == len(found):
            continue
        if missing:
            raise BadInput(
                f"{posixpath.join(str(where), folder).rstrip('/')}: has no {missing[0]}.csv, expected {EXPECTED}"
            )
        return {role: read_list(file) for role, file in found.items() if file is not None}
    raise BadInput(f"{where}: has no lists, expected {EXPECTED}; give their folder as `lists`")


def read_list(file: Path | Member) -> FileList:
    """Read a list and tell its naming; raises BadInput for a row that is not named that way or not by its class."""
    content = read_origin(file)
    is_json = str(file).lower().endswith(".json")
    rows = _json_rows(content, file) if is_json else parse_rows(content, file, ["filename", "label"])
    if not rows:
        raise BadInput(f"{file}: names no files, expected rows of filename and label")
    naming = next((each for each, pattern in NAMINGS.items() if pattern.fullmatch(rows[0][0])), "ilsvrc")
    for number, (filename, class_id) in enumerate(rows, start=2):
        match = NAMINGS[naming].fullmatch(filename)
        if match is None or match[1] != class_id:
            message = f"{file}: line {number} names {filename!r} of class {class_id!r}"
            raise BadInput(f"{message}, expected n01532829_13061.JPEG or n0153282900000005.jpg, as in the other lines")
    return FileList(str(file), naming, rows)


def check_lists(base: Mapping[str, FileList], split_of: Mapping[str, str], per_class: int) -> None:
    """Every list names the classes of its split, each with `per_class` files, and no file twice. Raises BadInput."""
    check_disjoint({posixpath.basename(each.place): [filename for filename, _ in each.rows] for each in base.values()})
    for role, listed in base.items():
        split = SPLIT_OF_ROLE[role]
        counts = Counter(class_id for _, class_id in listed.rows)
        expected = {class_id for class_id, each in split_of.items() if each == split}
        _check_classes(listed.place, split, set(counts), expected, known=split_of)
        for class_id, count in counts.items():
            if count != per_class:
                raise BadInput(f"{listed.place}: names {count} images of class {class_id}, expected {per_class}")


def _check_classes(
    place: str, split: str, named: Collection[str], expected: Collection[str], known: Iterable[str]
) -> None:
    """Tell missing classes, further classes and another split apart."""
    missing, further = sorted(set(expected) - set(named)), sorted(set(named) - set(expected))
    right = f"expected exactly the {len(expected)} {split} classes of Ravi and Larochelle's split"
    if missing and further:
        strange = len(set(further) - set(known))
        seen = f"{_some(further)} ({strange} of no split at all) and lacks {_some(missing)}"
        message = f"{place}: names {seen}, {right}"
        raise BadInput(f"{message}: these lists are of another split (Vinyals et al. have one); use Ravi's lists")
    if further:
        raise BadInput(f"{place}: names {_some(further)}, {right}; remove their rows")
    if missing:
        raise BadInput(f"{place}: does not name {_some(missing)}, {right}; fetch it again")


def _some(classes: Sequence[str]) -> str:
    return f"class {classes[0]}" + (f" and {len(classes) - 1} more" if len(classes) > 1 else "")


def _json_rows(content: bytes, place: object) -> list[tuple[str, ...]]:
    """The rows of a JSON list in either form. Raises BadInput."""
    form = "a JSON of file name → class, or with label_names, image_names and image_labels"
    try:
        facts = json.loads(content)
        names, labels = _named_and_labelled(facts)
        rows: list[tuple[str, ...]] = [
            (posixpath.basename(name), label) for name, label in zip(names, labels, strict=True)
        ]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise BadInput(f"{place}: cannot be read ({one_line(error)}), expected {form}") from error
    for name, label in rows:
        if not isinstance(label, str):
            raise BadInput(f"{place}: gives {name} the label {label!r}, expected its class such as n01532829")
    return rows


def _named_and_labelled(facts: Any) -> tuple[list[str], list[Any]]:
    if "image_names" not in facts:
        return list(facts.keys()), list(facts.values())
    names = facts["label_names"]
    return facts["image_names"], [names[label] if isinstance(label, int) else label for label in facts["image_labels"]]
