"""Packing raw JPEGs against a bare decode loop over all cores on the same files.

Ours is `repro.preparation.packing.pack` as a stage calls it: reading, hashing, decoding, resizing, writing, journal,
manifest and the final sync. The reference is a warm pool of one process per core that opens, decodes and resizes with
Pillow and throws the result away: `decode` as it is, `decode_reduced` at the same reduced scale as ours, which is the
harder opponent. The files are like ILSVRC's: 500×375, about 100 kB. A ratio of 0.8 means 80 % of the bare loop's
throughput.
"""

import multiprocessing
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from repro.preparation.images import available_cores

CLASSES, PER_CLASS, SIZE = 6, 160, 84


def bench_decoding(decoder: Callable[[str], int], repeats: int, folder: Path | None = None) -> dict[str, float]:
    """Medians over interleaved repeats, in seconds for all images: ours_s, reference_s and ratio.

    `folder` holds class folders of JPEGs (at least 3, with 3 images or more); without one, synthetic files are made.
    """
    with tempfile.TemporaryDirectory() as scratch, multiprocessing.get_context("spawn").Pool(available_cores()) as pool:
        root = folder or write_jpegs(Path(scratch) / "raw")
        # Imported here, so that the reference's processes need not import torch. They are spawned, not served by
        # multiprocessing's own server: what they compute then counts as ours, not as that of others on the machine.
        from repro.preparation.packing import pack
        from repro.preparation.sources import collect
        from tools.benchmarks.timing import interleaved

        files = sorted(str(file) for file in root.glob("*/*.[jJ]*"))
        options = {"root": root, "classes": [len(list(root.iterdir())) - 2, 1, 1], "extra": 2}
        collection = collect("image_folder", "bench", 0, options)
        return interleaved(
            partial(pack, collection, Path(scratch) / "packed", size=SIZE),
            partial(pool.map, decoder, files, chunksize=32),
            repeats,
        )


def decode(file: str) -> int:
    """Open, decode and resize one file, as a loader without further thought does."""
    with Image.open(file) as image:
        return np.asarray(image.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BILINEAR)).nbytes


def decode_reduced(file: str) -> int:
    """The same at JPEG's own reduced scale, as ours does."""
    with Image.open(file) as image:
        image.draft("RGB", (2 * SIZE, 2 * SIZE))
        return np.asarray(image.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BILINEAR)).nbytes


def write_jpegs(root: Path) -> Path:
    """Class folders of JPEGs with photograph-like amounts of detail, each different."""
    random = np.random.default_rng(0)
    for number in range(CLASSES * PER_CLASS):
        file = root / f"class{number % CLASSES}" / f"{number}.JPEG"
        file.parent.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(random.integers(0, 256, (40, 50, 3), dtype=np.uint8)).resize((500, 375))
        noise = random.integers(-20, 20, (375, 500, 3), dtype=np.int16)
        Image.fromarray((np.asarray(coarse) + noise).clip(0, 255).astype(np.uint8)).save(file, quality=92)
    return root
