"""Augmentation of a whole batch on its device, from uniform numbers drawn beforehand.

An image's fate is one row of `draws` uniform numbers, so that any part of a batch is augmented as the whole would be.
Dimensions: N images, C channels, H height, W width, P uniform numbers per image.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from pydantic import with_config
from torch import Tensor

from repro.errors import BadInput
from repro.options import STRICT

# Columns of the uniform numbers.
SHIFT_Y, SHIFT_X, FLIP, AREA, ASPECT, BRIGHTNESS, CONTRAST, SATURATION = range(8)
ASPECT_RANGE = 4 / 3  # of a resized crop: 3:4 to 4:3
LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601


@with_config(STRICT)
@dataclass(frozen=True)
class Augmentation:
    """What happens to training images; the default is nothing.

    `crop_padding`: a crop of the full size out of the image with this many empty pixels around it. `resized_crop`: a
    crop of at least this share of the area, resized to the full size (0: none). `flip`: mirror every second image
    (wrong for glyphs). `jitter`: brightness, contrast and (colour only) saturation change by up to this share.
    """

    crop_padding: int = 0
    resized_crop: float = 0.0
    flip: bool = False
    jitter: float = 0.0

    def __post_init__(self) -> None:
        if self.crop_padding < 0 or not 0 <= self.resized_crop <= 1 or not 0 <= self.jitter <= 1:
            raise BadInput(
                f"augmentation crop_padding={self.crop_padding}, resized_crop={self.resized_crop}, "
                f"jitter={self.jitter}: expected at least 0, and the last two at most 1"
            )
        if self.crop_padding and self.resized_crop:
            raise BadInput("augmentation has both crop_padding and resized_crop; set one of them to 0")

    def draw(self, images: int, generator: torch.Generator) -> Tensor:
        """The uniform numbers (N×P, on the CPU) that decide what happens to each image."""
        return torch.rand(images, 8, generator=generator)

    def __call__(self, images_NCHW: Tensor, draws_NP: Tensor) -> Tensor:
        """Augmented images of the same shape, still in 0 … 255."""
        if self == NO_AUGMENTATION:
            return images_NCHW
        draws_NP = draws_NP.to(images_NCHW.device)
        if self.resized_crop:
            images_NCHW = self._resized_crop(images_NCHW, draws_NP)
        elif self.crop_padding or self.flip:
            images_NCHW = self._shifted(images_NCHW, draws_NP)
        return self._jittered(images_NCHW, draws_NP) if self.jitter else images_NCHW

    def _flips(self, draws_NP: Tensor) -> Tensor:
        return (draws_NP[:, FLIP] < 0.5) & self.flip

    def _shifted(self, images_NCHW: Tensor, draws_NP: Tensor) -> Tensor:
        """Padded crop and flip as one look-up of bytes."""
        number, _, height, width = images_NCHW.shape
        pad, device = self.crop_padding, images_NCHW.device
        padded_NHWC = F.pad(images_NCHW, (pad, pad, pad, pad)).permute(0, 2, 3, 1)
        shift_N2 = (draws_NP[:, [SHIFT_Y, SHIFT_X]] * (2 * pad + 1)).long()
        y_NH = shift_N2[:, :1] + torch.arange(height, device=device)
        x_W = torch.arange(width, device=device)
        x_NW = shift_N2[:, 1:] + torch.where(self._flips(draws_NP)[:, None], x_W.flip(0), x_W)
        image_N11 = torch.arange(number, device=device)[:, None, None]
        return padded_NHWC[image_N11, y_NH[:, :, None], x_NW[:, None, :]].permute(0, 3, 1, 2)

    def _resized_crop(self, images_NCHW: Tensor, draws_NP: Tensor) -> Tensor:
        """A window of random area, aspect and place, sampled bilinearly; in grid units an image spans −1 … 1."""
        area_N = self.resized_crop + (1 - self.resized_crop) * draws_NP[:, AREA]
        stretch_N = ASPECT_RANGE ** (draws_NP[:, ASPECT] - 0.5)  # square root of an aspect of 3:4 to 4:3
        size_N2 = torch.stack([area_N.sqrt() * stretch_N, area_N.sqrt() / stretch_N], dim=1).clamp(max=1)
        centre_N2 = (2 * draws_NP[:, [SHIFT_X, SHIFT_Y]] - 1) * (1 - size_N2)
        mirror_N = 1 - 2 * self._flips(draws_NP).float()
        theta_N23 = torch.zeros(len(images_NCHW), 2, 3, device=images_NCHW.device)
        theta_N23[:, 0, 0], theta_N23[:, 1, 1] = size_N2[:, 0] * mirror_N, size_N2[:, 1]
        theta_N23[:, :, 2] = centre_N2
        grid = F.affine_grid(theta_N23, list(images_NCHW.shape), align_corners=False)
        return F.grid_sample(images_NCHW.float(), grid, padding_mode="border", align_corners=False)

    def _jittered(self, images_NCHW: Tensor, draws_NP: Tensor) -> Tensor:
        """Brightness, then contrast around the image's mean, then saturation around its gray version."""
        factors_NP = 1 + self.jitter * (2 * draws_NP - 1)
        bright, contrast, saturation = (
            factors_NP[:, column].view(-1, 1, 1, 1) for column in (BRIGHTNESS, CONTRAST, SATURATION)
        )
        images_NCHW = images_NCHW.float() * bright
        mean = images_NCHW.mean(dim=(1, 2, 3), keepdim=True)
        images_NCHW = mean + contrast * (images_NCHW - mean)
        if images_NCHW.shape[1] == len(LUMA):
            gray = (images_NCHW * images_NCHW.new_tensor(LUMA).view(1, 3, 1, 1)).sum(dim=1, keepdim=True)
            images_NCHW = gray + saturation * (images_NCHW - gray)
        return images_NCHW.clamp(0, 255)


NO_AUGMENTATION = Augmentation()
