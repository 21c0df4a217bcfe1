"""Augmentation: what it may and may not do to an image, and that a part of a batch fares as in the whole."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from repro.data.loading import normalise
from repro.errors import BadInput
from repro.training.augment import AREA, ASPECT, FLIP, SHIFT_X, SHIFT_Y, Augmentation

SOME = {
    "crop": Augmentation(crop_padding=2, flip=True),
    "resized": Augmentation(resized_crop=0.4, flip=True),
    "jitter": Augmentation(jitter=0.4),
    "all": Augmentation(crop_padding=1, flip=True, jitter=0.2),
}


@pytest.fixture(params=[1, 3])
def images_NCHW(request: pytest.FixtureRequest) -> Tensor:
    random = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (12, request.param, 9, 9), generator=random, dtype=torch.uint8)


def draws(images_NCHW: Tensor, seed: int = 0) -> Tensor:
    return Augmentation().draw(len(images_NCHW), torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", SOME)
def test_shape_and_range_stay_and_equal_draws_give_equal_images(images_NCHW: Tensor, name: str) -> None:
    first = SOME[name](images_NCHW, draws(images_NCHW))
    assert first.shape == images_NCHW.shape
    assert 0 <= first.min()
    assert first.max() <= 255
    assert torch.equal(first, SOME[name](images_NCHW, draws(images_NCHW)))
    assert not torch.equal(first, SOME[name](images_NCHW, draws(images_NCHW, seed=1)))


@pytest.mark.parametrize("name", SOME)
def test_a_part_of_a_batch_is_augmented_as_in_the_whole(images_NCHW: Tensor, name: str) -> None:
    whole = SOME[name](images_NCHW, draws(images_NCHW))
    part = SOME[name](images_NCHW[4:7], draws(images_NCHW)[4:7])
    torch.testing.assert_close(part, whole[4:7])


def test_every_padded_crop_is_a_window_of_the_padded_image(images_NCHW: Tensor) -> None:
    draws_NP = draws(images_NCHW)
    cropped = Augmentation(crop_padding=2, flip=True)(images_NCHW, draws_NP)
    for image, crop, draw in zip(images_NCHW, cropped, draws_NP, strict=True):
        y, x = int(draw[SHIFT_Y] * 5), int(draw[SHIFT_X] * 5)
        window = F.pad(image, (2, 2, 2, 2))[:, y : y + 9, x : x + 9]
        assert torch.equal(crop, window.flip(-1) if draw[FLIP] < 0.5 else window)


def test_a_crop_of_the_whole_area_changes_nothing_but_may_mirror(images_NCHW: Tensor) -> None:
    draws_NP = draws(images_NCHW)
    draws_NP[:, AREA], draws_NP[:, ASPECT] = 1.0, 0.5  # all of the area, square
    same = Augmentation(resized_crop=0.5)(images_NCHW, draws_NP)
    torch.testing.assert_close(same, images_NCHW.float(), atol=0.01, rtol=0)
    draws_NP[:, FLIP] = 0.1
    flipped = Augmentation(resized_crop=0.5, flip=True)(images_NCHW, draws_NP)
    torch.testing.assert_close(flipped, images_NCHW.flip(-1).float(), atol=0.01, rtol=0)


def test_nothing_is_the_default(images_NCHW: Tensor) -> None:
    assert Augmentation()(images_NCHW, draws(images_NCHW)) is images_NCHW
    assert normalise(images_NCHW).dtype == torch.float32


@pytest.mark.parametrize("options", [{"crop_padding": -1}, {"resized_crop": 1.5}, {"jitter": -0.1}])
def test_impossible_amounts_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(BadInput, match=f"{next(iter(options))}={next(iter(options.values()))}"):
        Augmentation(**options)
    with pytest.raises(BadInput, match="both crop_padding and resized_crop"):
        Augmentation(crop_padding=1, resized_crop=0.5)
