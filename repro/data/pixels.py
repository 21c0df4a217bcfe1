"""The images of a dataset: on disk until somebody asks for them, and checked before they are given.

Whoever reads all of them has the whole file hashed, once per process. Whoever reads a few has those few hashed, each
against the manifest; the rest of the file is not read.

Dimensions: N images, H height, W width, C channels.
"""

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd

from repro.errors import BadInput
from repro.files import sha256_once

ImageShape = tuple[int, int, int]


class Pixels(Protocol):
    """uint8 images by row; `image_shape` is their height, width and channels."""

    image_shape: ImageShape

    def all(self) -> np.ndarray:
        """Every image (N×H×W×C)."""

    def of(self, rows_N: np.ndarray) -> np.ndarray:
        """The images of these rows, in their order."""


class PixelsInMemory:
    """Images that no file holds."""

    def __init__(self, images_NHWC: np.ndarray) -> None:
        self.images_NHWC = images_NHWC
        self.image_shape: ImageShape = images_NHWC.shape[1:]

    def all(self) -> np.ndarray:
        return self.images_NHWC

    def of(self, rows_N: np.ndarray) -> np.ndarray:
        return self.images_NHWC[rows_N]


class StoredPixels:
    """An array file with the content hash `sha256`, beside a manifest with the hash of each image.

    `remedy` is what to do where the file is not the one that was written: `all` and `of` raise BadInput then.
    """

    def __init__(self, file: Path, sha256: str, image_shape: ImageShape, manifest: Path, remedy: str) -> None:
        self.file, self.sha256, self.image_shape = file, sha256, image_shape
        self._manifest, self._remedy = manifest, remedy
        self._whole: np.ndarray | None = None

    def all(self) -> np.ndarray:
        """Every image, memory-mapped, after checking the whole file."""
        if self._whole is None:
            found = sha256_once(self.file) if self.file.is_file() else "no file"
            if found != self.sha256:
                raise BadInput(f"{self.file}: content is {found}, expected {self.sha256}; {self._remedy}")
            self._whole = np.load(self.file, mmap_mode="r")
        return self._whole

    def of(self, rows_N: np.ndarray) -> np.ndarray:
        """The images of these rows, each checked by itself unless the whole file was."""
        if self._whole is not None:
            return self._whole[rows_N]
        images_NHWC = np.empty((len(rows_N), *self.image_shape), np.uint8)
        if not self.file.is_file():
            raise BadInput(f"{self.file}: content is no file, expected {self.sha256}; {self._remedy}")
        before = self.file.stat().st_size - len(self._hashes_N) * images_NHWC[:1].nbytes  # numpy's own header
        with self.file.open("rb", buffering=0) as stream:
            for image_HWC, row in zip(images_NHWC, rows_N.tolist(), strict=True):
                stream.seek(max(before, 0) + row * image_HWC.nbytes)
                stream.readinto(image_HWC.data.cast("B"))
                found = hashlib.sha256(image_HWC.data).hexdigest()
                if found != self._hashes_N[row]:
                    message = f"{self.file}: content is {found} in image {row}, expected {self._hashes_N[row]}"
                    raise BadInput(f"{message}; {self._remedy}")
        return images_NHWC

    @cached_property
    def _hashes_N(self) -> np.ndarray:
        return pd.read_parquet(self._manifest, columns=["sha256"])["sha256"].to_numpy()
