"""What a source gathers before anything is decoded: pictures with class, role and domain, and the header.

A source only names pictures; `packing.pack` decodes them. Both the manifest's rows and the packed images follow the
order that a collection has.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from repro.data.dataset import SPLIT_OF_ROLE, ClassInfo, DomainRule, Header, stored_order
from repro.errors import BadInput
from repro.preparation.decoding import Crop
from repro.preparation.images import RawImage
from repro.preparation.splits import label_order

NO_DOMAIN = "all"


@dataclass(frozen=True, slots=True)
class Picture:
    """A raw image with its place in the dataset."""

    raw: RawImage
    class_name: str
    role: str
    domain: str = NO_DOMAIN


@dataclass(frozen=True)
class Collection:
    """All pictures of a dataset in the stored order, the header that `dataset.json` will have, and how to crop."""

    header: Header
    pictures: Sequence[Picture]
    crop: Crop = "squashed"

    def manifest(self) -> pd.DataFrame:
        """A manifest without content hashes: label, domain, role and source, a row per picture."""
        return _manifest(self.header, self.pictures)


def gather(
    name: str,
    classes: Iterable[ClassInfo],
    pictures: Iterable[Picture],
    *,
    domains: Sequence[str] = (NO_DOMAIN,),
    domain_rule: DomainRule = "none",
    provenance: Mapping[str, Any],
) -> Collection:
    """Bring classes into the label order and pictures into the stored order; every class must have what its split asks.

    Raises BadInput for a class in two splits, and for a class without pictures in one of its roles.
    """
    header = Header(name, label_order(classes), tuple(domains), domain_rule, dict(provenance))
    listed = sorted(pictures, key=lambda picture: picture.raw.source)
    held = Counter((picture.class_name, picture.role) for picture in listed)
    for info in header.classes:
        for role, split in SPLIT_OF_ROLE.items():
            if split == info.split and not held[info.name, role]:
                message = f"{name}: class {info.name} has no image for the role {role}, expected at least one"
                raise BadInput(f"{message}; ask for fewer images in its other roles or add images")
    order = stored_order(_manifest(header, listed))
    return Collection(header, [listed[place] for place in order])


def _manifest(header: Header, pictures: Sequence[Picture]) -> pd.DataFrame:
    labels = {info.name: label for label, info in enumerate(header.classes)}
    domains = {domain: place for place, domain in enumerate(header.domains)}
    rows = [(labels[each.class_name], domains[each.domain], each.role, each.raw.source) for each in pictures]
    return pd.DataFrame(rows, columns=["label", "domain", "role", "source"])
