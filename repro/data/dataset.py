"""One dataset on disk: packed images, a manifest row per image, and the one label order (seen classes first).

A folder holds `images.npy` (uint8, N×H×W×C), `manifest.parquet` (one row per image, in the same order, with the hash
of its pixels) and `dataset.json` (classes in label order, domains, where the images came from), sealed by `SHA256SUMS`.
Rows are sorted by role, then label, then domain, so that a role is one contiguous range.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from repro.data.pixels import ImageShape, Pixels, StoredPixels
from repro.errors import BadInput
from repro.files import check_seal, read_seal, seal, whole_folder

ROLES = ("train", "val", "test", "seen_val", "seen_test")
SPLIT_OF_ROLE = {"train": "seen", "seen_val": "seen", "seen_test": "seen", "val": "val", "test": "test"}
SPLITS = ("seen", "val", "test")
FORMAT = 1
HEADER, IMAGES, MANIFEST = "dataset.json", "images.npy", "manifest.parquet"

# How domains enter a task: not at all; a class belongs to one domain; a class has images in every domain.
DomainRule = Literal["none", "per_class", "per_image"]


@dataclass(frozen=True)
class ClassInfo:
    """A class: its split decides whether it is seen; a super-category is kept where the dataset has one."""

    name: str
    split: str
    supercategory: str = ""


@dataclass(frozen=True)
class Header:
    """What `dataset.json` says; `provenance` records source, seed, variant and the like."""

    name: str
    classes: tuple[ClassInfo, ...]
    domains: tuple[str, ...]
    domain_rule: DomainRule
    provenance: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Dataset:
    """An opened dataset; the images stay on disk until they are asked for."""

    header: Header
    pixels: Pixels
    labels_N: Tensor
    domains_N: Tensor
    roles: dict[str, Tensor]

    @property
    def seen_classes(self) -> int:
        """Number of seen classes; their labels are 0 … seen_classes − 1."""
        return sum(info.split == "seen" for info in self.header.classes)

    def labels_of(self, split: str) -> Tensor:
        """Labels of the classes of `split`, ascending."""
        return torch.tensor([label for label, info in enumerate(self.header.classes) if info.split == split])

    @property
    def images_NHWC(self) -> np.ndarray:
        """All images; raises BadInput where they are not the ones that were written."""
        return self.pixels.all()

    @property
    def image_shape(self) -> ImageShape:
        """Height, width, channels."""
        return self.pixels.image_shape


def write_dataset(folder: Path, header: Header, images_NHWC: np.ndarray, manifest: pd.DataFrame) -> None:
    """Write a whole dataset folder or none.

    `manifest` has the columns label, domain (index into the header's domains), role, source and sha256 (of the
    pixels), a row per image. Rows are brought into the stored order here, images with them.
    """
    order = stored_order(manifest)
    with whole_folder(folder) as partial:
        # Written, not mapped: a full disk is then an error, not a signal that ends the process.
        with (partial / IMAGES).open("wb") as stream:
            facts = {"descr": "|u1", "fortran_order": False, "shape": (len(order), *images_NHWC.shape[1:])}
            np.lib.format.write_array_header_1_0(stream, facts)
            for start in range(0, len(order), 4096):
                stream.write(np.ascontiguousarray(images_NHWC[order[start : start + 4096]], np.uint8).data)
        describe_images(partial, header, manifest.iloc[order].reset_index(drop=True), images_NHWC.shape[1:])


def stored_order(manifest: pd.DataFrame) -> np.ndarray:
    """Give the row numbers of `manifest` in the stored order; equal rows keep their places."""
    role_order = manifest["role"].map({role: place for place, role in enumerate(ROLES)})
    return np.lexsort((manifest["domain"], manifest["label"], role_order))


def describe_images(folder: Path, header: Header, table: pd.DataFrame, image_shape: tuple[int, ...]) -> None:
    """Write manifest and `dataset.json` beside a finished `images.npy`; `table` is a manifest in the stored order."""
    names = [info.name for info in header.classes]
    table.insert(0, "class", [names[label] for label in table["label"]])
    table.to_parquet(folder / MANIFEST, index=False)
    facts = asdict(header) | {
        "format": FORMAT,
        "images": len(table),
        "image_shape": list(image_shape),
    }
    (folder / HEADER).write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    seal(folder, HEADER, IMAGES, MANIFEST)


def open_dataset(folder: Path) -> Dataset:
    """Open a dataset folder after checking description and manifest; images are checked when they are read.

    Raises BadInput where a file is not the one that was written.
    """
    header, image_shape = _read_description(folder)
    manifest, remedy = folder / MANIFEST, _remedy(folder)
    check_seal(folder, HEADER, MANIFEST, remedy=remedy)
    of_images = read_seal(folder).get(IMAGES, "a content hash in its seal")
    table = pd.read_parquet(manifest, columns=["role", "label", "domain"])
    roles = table["role"].to_numpy()
    return Dataset(
        header=header,
        pixels=StoredPixels(folder / IMAGES, of_images, image_shape, manifest, remedy),
        labels_N=torch.from_numpy(table["label"].to_numpy(np.int64, copy=True)),
        domains_N=torch.from_numpy(table["domain"].to_numpy(np.int64, copy=True)),
        roles={role: torch.from_numpy(np.flatnonzero(roles == role)) for role in ROLES},
    )


def _read_description(folder: Path) -> tuple[Header, ImageShape]:
    """What `dataset.json` says: the header and the images' shape."""
    file = folder / HEADER
    if not file.is_file():
        raise BadInput(f"{folder}: no dataset.json; expected a folder of the splits stage (run `dvc repro splits`)")
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
        header = Header(
            name=facts["name"],
            classes=tuple(ClassInfo(**info) for info in facts["classes"]),
            domains=tuple(facts["domains"]),
            domain_rule=facts["domain_rule"],
            provenance=facts["provenance"],
        )
        height, width, channels = facts["image_shape"]
    except (ValueError, KeyError, TypeError) as error:
        message = f"{file}: not a dataset description ({error!r}), expected what splits wrote; {_remedy(folder)}"
        raise BadInput(message) from error
    return header, (height, width, channels)


def _remedy(folder: Path) -> str:
    return f"make {folder} again with `dvc repro -f -s splits@{folder.parent.name}`"
