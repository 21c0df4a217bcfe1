"""Counts on disk: how often each image of a cell was right, and each class was taken for another.

`images.parquet` has a row per way and image that was a query: its row in the dataset, its label, how often it was
`asked` for, and how often it was right in its `own` label set, in the `joint` one, and there once `calibrated`.
`confusions.parquet` has a row per way, true and predicted class of the joint label set, with the `count`.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from repro.errors import BadInput, one_line
from repro.files import MAKE_AGAIN, check_seal, whole_file

IMAGES = ("way", "image", "label", "asked", "own", "joint", "calibrated")
CONFUSIONS = ("way", "truth", "predicted", "count")
FILES = {"images.parquet": IMAGES, "confusions.parquet": CONFUSIONS}

Columns = Mapping[str, np.ndarray]


def write_counts(folder: Path, images: Columns, confusions: Columns) -> None:
    """Write both files into a cell's folder; equal counts give equal bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for (name, columns), values in zip(FILES.items(), (images, confusions), strict=True):
        table = pa.table({column: pa.array(values[column], pa.int32()) for column in columns})
        with whole_file(folder / name) as partial:
            # Bytes of equal weight side by side: a third of the size that small numbers have otherwise.
            split = dict.fromkeys(columns, "BYTE_STREAM_SPLIT")
            pq.write_table(table, partial, compression="zstd", use_dictionary=False, column_encoding=split)


class CellCounts:
    """The counts of one cell and seed at one way, read from its sealed folder; empty where the way has none."""

    def __init__(self, folder: Path, way: int) -> None:
        self.images, self.confusions = (_read(folder, name, way) for name in FILES)

    def of_classes(self, measure: str) -> dict[int, float]:
        """The share of right answers of each class in percent, by label: `own`, `joint` or `calibrated`."""
        asked, right = (np.bincount(self.images["label"], self.images[name]) for name in ("asked", measure))
        return {int(label): float(100 * right[label] / asked[label]) for label in np.flatnonzero(asked)}


def has_counts(folder: Path) -> bool:
    """Whether an evaluation kept counts in this folder."""
    return all((folder / name).is_file() for name in FILES)


def _read(folder: Path, name: str, way: int) -> dict[str, np.ndarray]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_seal(folder, name)
    try:
        table = pq.read_table(folder / name, columns=list(FILES[name]), filters=[("way", "=", way)])
    except (OSError, pa.ArrowException) as error:
        raise BadInput(f"{folder / name}: not a file of counts ({one_line(error)}); {MAKE_AGAIN}") from error
    if table.num_columns != len(FILES[name]):
        message = f"{folder / name}: its columns are {table.column_names}, expected {list(FILES[name])}"
        raise BadInput(f"{message}; {MAKE_AGAIN}")
    return {column: table[column].to_numpy() for column in table.column_names}
