"""What every collection of pictures is asked: how many of which role, and whether roles share contents."""

import hashlib
from collections import Counter

from repro.preparation.collection import Collection
from repro.preparation.images import read_content


def counts(collection: Collection) -> dict[tuple[str, str], int]:
    """(class, role) → images."""
    return Counter((picture.class_name, picture.role) for picture in collection.pictures)


def role_counts(collection: Collection) -> dict[str, int]:
    return Counter(picture.role for picture in collection.pictures)


def sources(collection: Collection, role: str) -> set[str]:
    return {picture.raw.source for picture in collection.pictures if picture.role == role}


def contents(collection: Collection, role: str) -> set[str]:
    images = [picture.raw for picture in collection.pictures if picture.role == role]
    return {hashlib.sha256(read_content(raw)).hexdigest() for raw in images}


def assert_roles_are_disjoint(collection: Collection) -> None:
    held = [contents(collection, role) for role in ("train", "val", "test", "seen_val", "seen_test")]
    assert sum(map(len, held)) == len(set().union(*held)) == len(collection.pictures)
