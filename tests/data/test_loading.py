"""Images on their way to the network."""

import numpy as np
import pytest
import torch

from repro.data.batches import ShuffledBatches
from repro.data.dataset import Dataset
from repro.data.loading import ImageStore, fetched, normalise
from repro.errors import BadInput


def test_rows_arrive_as_channels_first_bytes(tiny: Dataset) -> None:
    rows = torch.tensor([5, 3, 3, 40])
    images = ImageStore(tiny.images_NHWC, torch.device("cpu")).fetch(rows)
    assert images.dtype == torch.uint8
    assert np.array_equal(images.permute(0, 2, 3, 1).numpy(), tiny.images_NHWC[rows.numpy()])


def test_preparing_ahead_changes_nothing(tiny: Dataset) -> None:
    store, batches = ImageStore(tiny.images_NHWC, torch.device("cpu")), ShuffledBatches(tiny, batch=40, seed=0)

    def half(rows_N: torch.Tensor) -> torch.Tensor:
        return rows_N[:20]

    plain, threaded = (list(fetched(store, batches.draw, half, range(3, 9), ahead)) for ahead in (False, True))
    assert [step for step, _, _ in threaded] == [3, 4, 5, 6, 7, 8]
    for (_, drawn, images), (_, other, same) in zip(plain, threaded, strict=True):
        assert torch.equal(drawn.rows_N, other.rows_N)
        assert images.shape[0] == 20
        assert torch.equal(images, same)
    assert not list(fetched(store, batches.draw, half, range(9, 9), True))


@pytest.mark.parametrize("channels", [1, 3])
def test_normalised_images_are_centred(channels: int) -> None:
    noise = torch.randint(0, 256, (50, channels, 16, 16), generator=torch.Generator().manual_seed(0))
    normal = normalise(noise.to(torch.uint8))
    assert normal.dtype == torch.float32
    assert abs(normal.mean()) < 0.3
    assert 0.7 < normal.std() < 1.3


def test_other_channels_are_refused() -> None:
    with pytest.raises(BadInput, match="4 channels, expected 1"):
        normalise(torch.zeros(1, 4, 2, 2))
