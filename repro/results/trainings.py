"""The course of a training as an evaluation keeps it beside its records."""

from pathlib import Path

import numpy as np

from repro.errors import BadInput, one_line
from repro.files import MAKE_AGAIN, check_seal
from repro.results.records import TRAINING


def read_training(folder: Path) -> dict[str, np.ndarray]:
    """Steps, loss and validation (under its own name; NaN where there was none), empty where nothing was trained."""
    file = folder / TRAINING
    if not file.is_file():
        return {}
    check_seal(folder, file.name)
    try:
        header, *rows = file.read_text(encoding="utf-8").splitlines()
        numbers = np.array([[float(value or "nan") for value in row.split(",")] for row in rows], float)
        return dict(zip(header.split(","), numbers.reshape(len(rows), -1).T, strict=True))
    except ValueError as error:
        raise BadInput(f"{file}: not the course of a training ({one_line(error)}); {MAKE_AGAIN}") from error
