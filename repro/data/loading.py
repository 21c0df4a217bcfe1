"""Packed uint8 images to the device, by row, and the one normalisation that every network sees.

Dimensions: N images, H height, W width, C channels.
"""

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from repro.errors import BadInput

# Mean and standard deviation of a channel in 0 … 255, by number of channels. Colour: the MiniImageNet statistics that
# MetaOptNet's ResNet-12, and with it the released checkpoints, are trained with. Gray: the middle and a quarter of the
# range, since the rendered glyphs come in both polarities.
CHANNEL_STATISTICS = {
    1: ((127.5,), (63.75,)),
    3: ((120.396, 115.594, 104.540), (70.682, 68.276, 72.545)),
}

# A dataset up to this size is copied to the accelerator whole; a larger one is fetched batch by batch.
RESIDENT_BYTES = 4 * 2**30


class Draw(Protocol):
    """The images of one training step, as rows of the dataset."""

    @property
    def rows_N(self) -> Tensor: ...


D = TypeVar("D", bound=Draw)


def normalise(images_NCHW: Tensor) -> Tensor:
    """Images in 0 … 255, of any number type, to float32 of about zero mean and unit variance, on the same device."""
    channels = images_NCHW.shape[1]
    if channels not in CHANNEL_STATISTICS:
        raise BadInput(f"images have {channels} channels, expected 1 (gray) or 3 (colour); convert the source images")
    mean_C, std_C = (torch.tensor(values, device=images_NCHW.device) for values in CHANNEL_STATISTICS[channels])
    return (images_NCHW.float() - mean_C[:, None, None]) / std_C[:, None, None]


class ImageStore:
    """All images of a dataset, fetched by row.

    On the CPU rows are read straight from the (memory-mapped) array. An accelerator holds the whole array if it has at
    most RESIDENT_BYTES; otherwise rows travel through pinned memory, asynchronously.
    """

    def __init__(self, images_NHWC: np.ndarray, device: torch.device) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")  # nothing here writes
            self.images_NHWC = torch.from_numpy(images_NHWC)
        self.device = device
        if device.type != "cpu" and images_NHWC.nbytes <= RESIDENT_BYTES:
            self.images_NHWC = self.images_NHWC.to(device)

    def fetch(self, rows_N: Tensor) -> Tensor:
        """The images of these rows: uint8, N×C×H×W, stored channels-last, on the store's device."""
        return on_device(self.images_NHWC[rows_N.to(self.images_NHWC.device)], self.device)


def on_device(images_NHWC: Tensor, device: torch.device) -> Tensor:
    """The images as N×C×H×W, stored channels-last, on the device."""
    if images_NHWC.device != device:
        images_NHWC = images_NHWC.pin_memory().to(device, non_blocking=True)
    return images_NHWC.permute(0, 3, 1, 2)


def fetched(
    store: ImageStore,
    draw: Callable[[int], D],
    share: Callable[[Tensor], Tensor],
    steps: range,
    ahead: bool | None = None,
) -> Iterator[tuple[int, D, Tensor]]:
    """Yield (step, draw, images) of every step: `draw` names the rows, `share` picks those that this process embeds.

    With `ahead` (by default on every device but the CPU) a thread prepares the next step during the present one.
    """

    def prepare(step: int) -> tuple[int, D, Tensor]:
        drawn = draw(step)
        return step, drawn, store.fetch(share(drawn.rows_N))

    if not (store.device.type != "cpu" if ahead is None else ahead):
        yield from map(prepare, steps)
        return
    with ThreadPoolExecutor(max_workers=1) as thread:
        waiting = [thread.submit(prepare, step) for step in steps[:1]]
        for following in steps[1:]:
            ready = waiting.pop().result()
            waiting.append(thread.submit(prepare, following))
            yield ready
        yield from (last.result() for last in waiting)
