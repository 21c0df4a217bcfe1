"""Encoded pictures become square RGB pixels: what is done to each kind of file is decided here, once.

- The picture is turned as its EXIF orientation says.
- What is transparent is shown on white, so that colours hidden under full transparency do not appear.
- 16-bit greys are scaled to 8 bits; greyscale, palette and CMYK pictures become RGB.
- Of a file with several frames the first is taken.

Everything that can be wrong with one file ends in one sentence. Pillow releases the interpreter's lock while it
decodes and resizes, so that threads keep all cores busy.
"""

import io
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import ExifTags, Image, UnidentifiedImageError

from repro.errors import BadInput, one_line
from repro.preparation.images import RawImage

# GIF and BMP occur in Indoor-67 behind the ending .jpg.
FORMATS = ("JPEG", "PNG", "GIF", "BMP")
LARGEST_PIXELS = 89_478_485  # Pillow's own limit: larger files are taken for decompression bombs
RESIZED, CROPPED = 256, 224  # of center224, as in the released code

# squashed: the whole picture, stretched to a square as the published 84×84 packs are. center224: the short side
# resized to 256, the central 224×224 cut out, as the released code does at test; small squares stay whole.
Crop = Literal["squashed", "center224"]

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_UPRIGHT = (_TURNS[2], _TURNS[3], _TURNS[4])  # turns that keep width and height


@dataclass(frozen=True)
class Decoded:
    """A picture's pixels (size×size×3, uint8), its own width and height, and what was special about it."""

    pixels_HWC: np.ndarray
    shown: tuple[int, int]
    notes: tuple[str, ...] = ()


def decode(raw: RawImage, content: bytes, size: int, crop: Crop = "squashed") -> Decoded:
    """Decode what `read_content` gave to size×size RGB; `crop` says which part of the picture is kept.

    A JPEG that is not cropped is decoded at the smallest scale (1/1 … 1/8) that still has twice `size`, then resized
    with antialiasing. Raises BadInput, which names the image, for what cannot be decoded or is unreasonably large.
    """
    if isinstance(raw.origin, np.ndarray):
        height, width = raw.origin.shape[:2]
        return Decoded(_pixels_of(Image.fromarray(raw.origin), size, crop), (width, height))
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            return _decoded(image, raw.crop_bottom, size, crop)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise BadInput(f"{raw}: more than {LARGEST_PIXELS} pixels, expected a photograph; remove the file") from error
    except UnidentifiedImageError as error:
        kind = "is empty" if not content else f"is no picture (it starts with {content[:8]!r})"
        raise BadInput(f"{raw}: {kind}, expected a JPEG or PNG; replace the file") from error
    except Exception as error:  # a damaged picture can fail in any way
        message = f"{raw}: cannot be decoded ({one_line(error) or type(error).__name__})"
        raise BadInput(f"{message}, expected a whole JPEG or PNG; replace it") from error


def to_pixels(raw: RawImage, content: bytes, size: int, crop: Crop = "squashed") -> np.ndarray:
    """Only the pixels that `decode` gives."""
    return decode(raw, content, size, crop).pixels_HWC


def is_small_square(width: int, height: int) -> bool:
    """Whether a picture was brought to a small square before, so that center224 leaves it whole."""
    return width == height <= CROPPED


def _decoded(image: Image.Image, crop_bottom: int, size: int, crop: Crop) -> Decoded:
    if image.width * image.height > LARGEST_PIXELS:
        raise Image.DecompressionBombError
    full, several = image.size, getattr(image, "is_animated", False)
    if crop == "squashed" or is_small_square(*image.size):
        image.draft("RGB", (2 * size, 2 * size))
    image.load()
    turn = _turn(image)
    rgb = _to_rgb(image)
    if turn is not None:
        rgb = rgb.transpose(turn)
        full = full if turn in _UPRIGHT else full[::-1]
    kept_rows = rgb.height * (full[1] - crop_bottom) / full[1]  # at the scale of the draft
    notes = [note for note, holds in _notes(image, turn is not None, several).items() if holds]
    return Decoded(_pixels_of(rgb, size, crop, kept_rows), full, tuple(notes))


def _turn(image: Image.Image) -> Image.Transpose | None:
    """How a loaded picture has to be turned; not at all where its EXIF data cannot be read."""
    try:
        return _TURNS.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:  # damaged EXIF data can fail in any way, and the picture is whole
        return None


def _notes(image: Image.Image, is_turned: bool, several: bool) -> dict[str, bool]:
    """What a user may want to know of a file's kind, and whether it holds."""
    return {
        "16-bit grey, scaled to 8 bits": image.mode.startswith("I"),
        "greyscale, made RGB": image.mode in ("1", "L", "LA"),
        "CMYK, made RGB": image.mode == "CMYK",
        "turned, as EXIF says": is_turned,
        "transparent, shown on white": image.has_transparency_data,
        "several frames, the first used": several,
    }


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):
        image = _eight_bits(image)
    if not image.has_transparency_data:
        return image.convert("RGB")
    picture = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")


def _eight_bits(image: Image.Image) -> Image.Image:
    """A grey picture of 16 bits in 8 bits: 65,535 becomes 255; its transparent value, where it has one, white."""
    greys_HW = np.asarray(image).astype(np.int64)
    scaled_HW = ((greys_HW * 255 + 32_767) // 65_535).clip(0, 255).astype(np.uint8)
    if "transparency" in image.info:
        scaled_HW[greys_HW == image.info["transparency"]] = 255
    return Image.fromarray(scaled_HW)


def _pixels_of(image: Image.Image, size: int, crop: Crop, kept_rows: float | None = None) -> np.ndarray:
    """The picture's upper `kept_rows` (None: all) as size×size pixels."""
    rows = float(image.height) if kept_rows is None else kept_rows
    if crop == "center224" and not is_small_square(image.width, round(rows)):
        image = _center(image, rows)
        rows = image.height
    if image.size == (size, size) and rows == image.height:
        return np.asarray(image)
    box = (0.0, 0.0, image.width, rows)
    return np.asarray(image.resize((size, size), Image.Resampling.BILINEAR, box=box))


def _center(image: Image.Image, rows: float) -> Image.Image:
    """The central square after the short side was resized; sizes are rounded as torchvision's transforms do."""
    image = image if rows == image.height else image.crop((0, 0, image.width, round(rows)))
    short = min(image.size)
    width, height = (int(RESIZED * side / short) for side in image.size)
    left, top = (round((side - CROPPED) / 2) for side in (width, height))
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    return image.crop((left, top, left + CROPPED, top + CROPPED))
