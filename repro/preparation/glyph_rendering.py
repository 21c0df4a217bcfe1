"""Batched rendering: glyph masks to small gray images that vary in font, pose, stroke, light, clutter and noise.

Dimensions: N images, F fonts, C clutter glyphs, P stroke planes, B side of a mask, H and W sides of an image, G nodes
per side of a coarse field. Image coordinates span [−1, 1] with x to the right and y down, as in `grid_sample`.
All arithmetic is float64, so that differences between processors or thread counts stay far below one grey level
and the rounded bytes agree.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from repro.errors import BadInput
from repro.preparation.glyph_analogues import Look

ROTATION = math.radians(20)
SCALE = (0.70, 1.05)
LOG_ASPECT = 0.2
SHEAR = 0.25
SHIFT = 0.10  # of the image's side
DISTRACTORS = 2
DISTRACTOR_SCALE = (0.5, 0.9)
DISTRACTOR_DISTANCE = (0.7, 1.0)  # from the centre in half sides, so that the glyph itself stays readable
STRIPES = (2.5, 4.5)  # periods of the hatching across the image
NODES = 4  # per side of the coarse random fields behind elastic displacement and uneven paper


@dataclass(frozen=True)
class Strengths:
    """How hard the images are; zero switches a nuisance off."""

    elastic: float  # standard deviation of the smooth displacement, in half sides of the image
    clutter: float  # opacity of the distracting glyphs
    occlusion: float  # mean side of the occluding box, in sides of the image
    noise: float  # standard deviation, of the full grey range
    background: float  # amplitude of the uneven paper, as a share of the contrast

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value <= 1:
                raise BadInput(f"{name} is {value}, expected a strength from 0 to 1")


class Draws:
    """Random numbers for a batch of N images; every one has the batch as its first dimension."""

    def __init__(self, count: int, generator: torch.Generator) -> None:
        self.count, self.generator = count, generator

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        """Give N×shape numbers, uniform in [low, high)."""
        return low + (high - low) * torch.rand(self.count, *shape, dtype=torch.float64, generator=self.generator)

    def bell(self, *shape: int) -> Tensor:
        """Give N×shape numbers of mean 0 and variance 1, near normal: a sum of uniforms needs no logarithm or cosine,
        whose last bits differ between processors."""
        return sum((self.uniform(-1, 1, *shape) for _ in range(3)), torch.zeros(()))

    def below(self, bound: int, *shape: int) -> Tensor:
        """Give N×shape integers in [0, bound)."""
        return torch.randint(bound, (self.count, *shape), generator=self.generator)


def stroke_planes(masks_FBB: Tensor) -> Tensor:
    """Give each uint8 mask in four strokes (F×4×B×B, 0 … 1): thin, as drawn, bold, and the outline around it."""
    drawn_FBB = masks_FBB.double() / 255
    thin_FBB = -functional.max_pool2d(-drawn_FBB, 3, stride=1, padding=1)
    bold_FBB = functional.max_pool2d(drawn_FBB, 3, stride=1, padding=1)
    outline_FBB = functional.max_pool2d(drawn_FBB, 5, stride=1, padding=2) - drawn_FBB
    return torch.stack([thin_FBB, drawn_FBB, bold_FBB, outline_FBB], dim=1)


def render(
    planes_FPBB: Tensor,
    clutter_CBB: Tensor,
    *,
    look: Look,
    strengths: Strengths,
    size: int,
    count: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Draw `count` images of one character: N×size×size uint8, and which of the F fonts each one shows (N)."""
    draws = Draws(count, generator)
    font_N = draws.below(len(planes_FPBB))
    ink_NHW = _glyph(planes_FPBB[font_N], look, strengths.elastic, size, draws)
    distraction_NHW = strengths.clutter * look.clutter * _distractors(clutter_CBB, size, draws)
    contrast_N11 = draws.uniform(look.contrast[0], look.contrast[1], 1, 1)
    # 0 is paper and 1 is ink until the two grey levels are known.
    scene_NHW = _paper(look, strengths.background, size, draws)
    scene_NHW = scene_NHW.lerp(torch.ones_like(scene_NHW), distraction_NHW.clamp(max=1))
    scene_NHW = scene_NHW.lerp(torch.ones_like(scene_NHW), ink_NHW)
    scene_NHW = _occluded(scene_NHW, strengths.occlusion * look.occlusion, size, draws)
    grey_NHW = (1 - contrast_N11) * draws.uniform(0, 1, 1, 1) + contrast_N11 * scene_NHW
    grey_NHW = grey_NHW + strengths.noise * look.noise * draws.bell(size, size)
    dark_ink_N11 = draws.uniform(0, 1, 1, 1) >= look.light_ink
    grey_NHW = torch.where(dark_ink_N11, 1 - grey_NHW, grey_NHW)
    return (grey_NHW * 255).round().clamp(0, 255).byte(), font_N


def _glyph(planes_NPBB: Tensor, look: Look, elastic: float, size: int, draws: Draws) -> Tensor:
    """Place the character: random stroke weight, pose and elastic displacement (N×H×W, 0 … 1)."""
    thin_NBB, drawn_NBB, bold_NBB, outline_NBB = planes_NPBB.unbind(dim=1)
    weight_N11 = draws.uniform(-0.5, 1, 1, 1)
    stroke_NBB = drawn_NBB + weight_N11.clamp(min=0) * (bold_NBB - drawn_NBB)
    stroke_NBB = stroke_NBB + weight_N11.clamp(max=0) * (drawn_NBB - thin_NBB)
    stroke_NBB = stroke_NBB.lerp(outline_NBB, look.outline)
    grid_NHW2 = _pose(SCALE, draws.uniform(-2 * SHIFT, 2 * SHIFT, 2), size, draws)
    return _sample(stroke_NBB, grid_NHW2 + elastic * _smooth(2, size, draws).permute(0, 2, 3, 1))


def _distractors(clutter_CBB: Tensor, size: int, draws: Draws) -> Tensor:
    """Place glyphs that belong to no class around the rim (N×H×W, 0 … 1)."""
    total_NHW = torch.zeros(draws.count, size, size, dtype=torch.float64)
    for _ in range(DISTRACTORS):
        angle_N = draws.uniform(0, 2 * math.pi)
        offset_N2 = draws.uniform(*DISTRACTOR_DISTANCE, 1) * torch.stack([angle_N.cos(), angle_N.sin()], dim=1)
        grid_NHW2 = _pose(DISTRACTOR_SCALE, offset_N2, size, draws)
        total_NHW = total_NHW.maximum(_sample(clutter_CBB[draws.below(len(clutter_CBB))], grid_NHW2))
    return total_NHW


def _paper(look: Look, background: float, size: int, draws: Draws) -> Tensor:
    """Uneven, possibly hatched paper around level 0 (N×H×W, in units of the contrast)."""
    uneven_NHW = background * look.background * _smooth(1, size, draws).squeeze(1)
    angle_N11, phase_N11 = draws.uniform(0, math.pi, 1, 1), draws.uniform(0, 2 * math.pi, 1, 1)
    x_W, y_H1 = _axis(size), _axis(size)[:, None]
    along_NHW = math.pi * draws.uniform(*STRIPES, 1, 1) * (angle_N11.cos() * x_W + angle_N11.sin() * y_H1)
    return uneven_NHW + look.hatching * (along_NHW + phase_N11).sin()


def _occluded(scene_NHW: Tensor, side: float, size: int, draws: Draws) -> Tensor:
    """Cover a box whose sides average `side` with one level between paper and ink."""
    half_N2 = side * draws.uniform(0.5, 1.5, 2)  # half of the image spans 1, so a side is twice this
    centre_N2 = draws.uniform(-0.6, 0.6, 2)
    from_x_NW = (_axis(size) - centre_N2[:, :1]).abs() < half_N2[:, :1]
    from_y_NH = (_axis(size) - centre_N2[:, 1:]).abs() < half_N2[:, 1:]
    box_NHW = from_y_NH[:, :, None] & from_x_NW[:, None, :]
    return torch.where(box_NHW, draws.uniform(0, 1, 1, 1), scene_NHW)


def _pose(scale: tuple[float, float], centre_N2: Tensor, size: int, draws: Draws) -> Tensor:
    """Random rotation, scale, aspect and shear about a centre, as the mask coordinates of every pixel (N×H×W×2)."""
    angle_N, shear_N = draws.uniform(-ROTATION, ROTATION), draws.uniform(-SHEAR, SHEAR)
    scale_N, stretch_N = draws.uniform(*scale), draws.uniform(-LOG_ASPECT, LOG_ASPECT).div(2).exp()
    x_NHW = _axis(size) - centre_N2[:, 0, None, None]
    y_NHW = _axis(size)[:, None] - centre_N2[:, 1, None, None]
    cos_N11, sin_N11 = angle_N.cos()[:, None, None], angle_N.sin()[:, None, None]
    turned_x_NHW, turned_y_NHW = cos_N11 * x_NHW + sin_N11 * y_NHW, cos_N11 * y_NHW - sin_N11 * x_NHW
    slanted_x_NHW = turned_x_NHW + shear_N[:, None, None] * turned_y_NHW
    across_N11, down_N11 = (scale_N * stretch_N)[:, None, None], (scale_N / stretch_N)[:, None, None]
    return torch.stack([slanted_x_NHW / across_N11, turned_y_NHW / down_N11], dim=-1)


def _smooth(channels: int, size: int, draws: Draws) -> Tensor:
    """Smooth random fields of about unit variance at their nodes (N×channels×H×W)."""
    coarse_NCGG = draws.bell(channels, NODES, NODES)
    return functional.interpolate(coarse_NCGG, size=(size, size), mode="bicubic", align_corners=True)


def _sample(mask_NBB: Tensor, grid_NHW2: Tensor) -> Tensor:
    return functional.grid_sample(mask_NBB[:, None], grid_NHW2, align_corners=False).squeeze(1).clamp(0, 1)


def _axis(size: int) -> Tensor:
    """Pixel centres along one side."""
    return (torch.arange(size, dtype=torch.float64) * 2 + 1) / size - 1
