"""From a character and a font to a mask: the shapes that the embedded benchmark is made of.

The fonts are the ones that matplotlib brings along. A mask is an uint8 square (255 = ink) in which the longer side of
the glyph's ink box measures three quarters of the square, so that capital O, small o and a circle become the same.
"""

import unicodedata
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
from fontTools.ttLib import TTFont
from PIL import Image, ImageDraw, ImageFont

FAMILIES = {
    "sans": ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSans-BoldOblique"),
    "serif": ("DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-Italic", "DejaVuSerif-BoldItalic"),
    "mono": ("DejaVuSansMono", "DejaVuSansMono-Bold", "DejaVuSansMono-Oblique", "DejaVuSansMono-BoldOblique"),
    "stix": ("STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic", "STIXGeneralBolIta"),
}
MAX_CORRELATION = 0.8  # of two classes' mean masks; above it they count as the same shape
MAX_BOX_CORRELATION = 0.7  # with the font's missing-glyph box, both stretched to the same ink box
MIN_INK = 0.03  # share of the square; below it a glyph counts as blank

_COMPARED_SIDE = 40  # masks are compared at this size
_RASTER_SIZE = 96  # font size of the first rasterisation; masks are box-filtered down from it
_INK_SHARE = 0.75  # longer side of the ink box, as a share of the mask's side
_UNASSIGNED = 0x10FFFE  # a noncharacter: no font has it, so it shows what a font draws for a missing glyph


def class_name(point: int) -> str:
    """Give a readable, unique name: `U+0041 LATIN CAPITAL LETTER A`."""
    return f"U+{point:04X} {unicodedata.name(chr(point))}"


def is_character(point: int) -> bool:
    """Tell whether this is a letter, number, punctuation mark or symbol that is not another one plus an accent."""
    character = chr(point)
    return unicodedata.category(character)[0] in "LNPS" and not unicodedata.decomposition(character)


@cache
def coverage(font: str) -> frozenset[int]:
    """Give the code points for which the font's own character map names a glyph."""
    with TTFont(_font_file(font), lazy=True) as opened:
        return frozenset(opened.getBestCmap())


def covering_fonts(point: int, families: Iterable[str]) -> tuple[str, ...]:
    """Name the fonts of these families that can draw the character, in a fixed order."""
    return tuple(font for family in families for font in FAMILIES[family] if point in coverage(font))


@cache
def mask(font: str, point: int, side: int) -> np.ndarray:
    """Draw one glyph as a side×side uint8 mask, centred; all zeros where the font draws nothing."""
    opened, character = _opened(font), chr(point)
    left, top, right, bottom = map(int, opened.getbbox(character))
    raster = Image.new("L", (max(1, right - left), max(1, bottom - top)))
    ImageDraw.Draw(raster).text((-left, -top), character, fill=255, font=opened)
    square = Image.new("L", (side, side))
    ink = raster.crop(raster.getbbox())
    shrink = _INK_SHARE * side / max(ink.size)
    width, height = (max(1, round(shrink * length)) for length in ink.size)
    small = ink.resize((width, height), Image.Resampling.BOX)
    square.paste(small, ((side - width) // 2, (side - height) // 2))
    return np.asarray(square)


def distinct(fonts_of_point: dict[int, tuple[str, ...]]) -> list[int]:
    """Drop blank glyphs, glyphs like a font's missing-glyph box, and all but the first of those that look the same.

    Points are taken in the order given; the mean mask over a point's fonts must correlate at most `MAX_CORRELATION`
    with that of every point kept before.
    """
    shapes = np.empty((len(fonts_of_point), _COMPARED_SIDE**2))
    kept: list[int] = []
    for point, fonts in fonts_of_point.items():
        masks_FBB = np.stack([mask(font, point, _COMPARED_SIDE) for font in fonts])
        if masks_FBB.mean(axis=(1, 2)).min() < 255 * MIN_INK or _is_box(fonts[0], point):
            continue
        shape = _standardised(masks_FBB.mean(axis=0))
        if not (shapes[: len(kept)] @ shape > MAX_CORRELATION).any():
            shapes[len(kept)] = shape
            kept.append(point)
    return kept


def _is_box(font: str, point: int) -> bool:
    """Tell whether a glyph, stretched to the same ink box, is what the font draws for characters it does not have."""
    return bool(_stretched(font, point) @ _stretched(font, _UNASSIGNED) > MAX_BOX_CORRELATION)


@cache
def _stretched(font: str, point: int) -> np.ndarray:
    picture = Image.fromarray(mask(font, point, _COMPARED_SIDE))
    half = _COMPARED_SIDE // 2
    return _standardised(np.asarray(picture.crop(picture.getbbox()).resize((half, half), Image.Resampling.BOX)))


def _standardised(shape: np.ndarray) -> np.ndarray:
    """Flatten to zero mean and unit length, so that dot products are correlations (an empty mask gives zeros)."""
    centred = shape.ravel() - shape.mean()
    return centred / max(float(np.linalg.norm(centred)), 1e-9)


def _font_file(font: str) -> Path:
    return Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{font}.ttf"


@cache
def _opened(font: str) -> ImageFont.FreeTypeFont:
    # The basic layout draws one glyph per character and does not depend on optional system libraries.
    return ImageFont.truetype(str(_font_file(font)), _RASTER_SIZE, layout_engine=ImageFont.Layout.BASIC)
