"""Every kind of picture shows what a person would see, or is refused with a sentence that names the file."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torchvision import transforms

from repro.errors import BadInput
from repro.preparation.decoding import Decoded, decode, to_pixels
from repro.preparation.images import RawImage
from repro.preparation.packing import pack
from repro.preparation.sources import collect
from tests.preparation.raw_trees import encoded, folder_tree

TRIES = 300  # damaged pictures


def saved(image: Image.Image, kind: str = "PNG", **how: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **how)
    return stream.getvalue()


def decoded(content: bytes, size: int = 8, **how: object) -> Decoded:
    return decode(RawImage(content, "x"), content, size, **how)  # type: ignore[arg-type]


def halves(width: int = 64, height: int = 32) -> np.ndarray:
    """Dark left, light right."""
    greys_HW = np.full((height, width), 40, np.uint8)
    greys_HW[:, width // 2 :] = 220
    return greys_HW


def test_sixteen_bit_greys_are_scaled_to_eight():
    greys_HW = np.linspace(0, 65_535, 64).astype(np.uint16).reshape(8, 8)
    found = decoded(saved(Image.fromarray(greys_HW)))
    assert np.abs(found.pixels_HWC[..., 0].astype(int) - greys_HW / 257).max() <= 0.5
    assert np.array_equal(found.pixels_HWC[..., 0], found.pixels_HWC[..., 2])
    assert found.notes == ("16-bit grey, scaled to 8 bits",)


def test_sixteen_bit_greys_keep_contrast_that_eight_bits_would_clip():
    greys_HW = (halves(8, 8).astype(np.uint16) << 8) + 300
    pixels = decoded(saved(Image.fromarray(greys_HW))).pixels_HWC
    assert abs(int(pixels[0, 0, 0]) - 41) <= 1 and abs(int(pixels[0, -1, 0]) - 221) <= 1


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_a_picture_is_turned_as_its_exif_data_says(orientation: int, kind: str):
    corners = np.zeros((32, 64, 3), np.uint8)
    corners[:16, :32] = 255  # light where the upper left of the upright picture is
    backwards = {1: None, 2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}[orientation]
    stored = Image.fromarray(corners)
    stored = stored if backwards is None else stored.transpose(Image.Transpose(backwards))
    exif = Image.Exif()
    exif[0x0112] = orientation
    found = decoded(saved(stored, kind, exif=exif))
    assert found.shown == (64, 32)
    assert found.pixels_HWC[:3, :3].min() > 200
    assert found.pixels_HWC[5:].max() < 60 and found.pixels_HWC[:, 5:].max() < 60
    assert ("turned, as EXIF says" in found.notes) == (orientation != 1)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_exif_data_that_cannot_be_read_leaves_the_picture_as_it_is():
    content = saved(Image.fromarray(halves()), "JPEG", exif=b"Exif\x00\x00II*\x00\xff\xff\xff\x7f")
    assert decoded(content).pixels_HWC[0, 0, 0] < 60


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "RGB with a transparent colour", "L with a transparent value"])
def test_what_is_transparent_is_white_and_hidden_colours_do_not_appear(mode: str):
    rgba = np.zeros((8, 8, 4), np.uint8)
    rgba[..., :3] = 90  # a hidden grey on the left
    rgba[:, 4:] = (20, 20, 20, 255)
    picture = Image.fromarray(rgba)
    if mode in ("RGBA", "LA"):
        content = saved(picture.convert(mode))
    elif mode == "P":
        content = saved(Image.fromarray(np.repeat([[0] * 4 + [1] * 4], 8, 0).astype(np.uint8)).convert("P"))
        indexed = Image.open(io.BytesIO(content))
        indexed.putpalette([90, 90, 90, 20, 20, 20])
        content = saved(indexed, transparency=0)
    else:
        flat = Image.fromarray(rgba[..., :3]).convert(mode.partition(" ")[0])
        content = saved(flat, transparency=(90, 90, 90) if flat.mode == "RGB" else 90)
    found = decoded(content)
    assert found.pixels_HWC[:, :4].min() == 255
    assert found.pixels_HWC[:, 4:].max() == 20
    assert "transparent, shown on white" in found.notes


def test_half_transparent_colours_are_mixed_with_white():
    assert set(decoded(saved(Image.new("RGBA", (8, 8), (0, 0, 0, 128)))).pixels_HWC.flatten()) == {127}


def test_of_several_frames_the_first_is_taken_and_said():
    frames = [Image.new("L", (8, 8), grey) for grey in (30, 200)]
    found = decoded(saved(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    assert found.pixels_HWC.max() == 30
    assert "several frames, the first used" in found.notes


@pytest.mark.parametrize(("mode", "note"), [("CMYK", "CMYK, made RGB"), ("L", "greyscale, made RGB")])
def test_cmyk_and_greyscale_jpegs_keep_their_look(mode: str, note: str):
    found = decoded(saved(Image.fromarray(halves()).convert("RGB").convert(mode), "JPEG", quality=95))
    assert np.abs(found.pixels_HWC[:, 0].astype(int) - 40).max() < 8
    assert np.abs(found.pixels_HWC[:, -1].astype(int) - 220).max() < 8
    assert found.notes == (note,)


@pytest.mark.parametrize("size", [(500, 375), (300, 451), (256, 256), (1000, 257), (100, 160), (640, 640)])
@pytest.mark.parametrize("target", [84, 32])
def test_center224_is_what_the_released_code_does_at_test(size: tuple[int, int], target: int):
    content = encoded(7, size=size)
    released = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.Resize(target)])
    expected = np.asarray(released(Image.open(io.BytesIO(content)).convert("RGB")))
    assert np.array_equal(decoded(content, target, crop="center224").pixels_HWC, expected)
    assert not np.array_equal(decoded(content, target).pixels_HWC, expected)


@pytest.mark.parametrize("side", [84, 224])
def test_center224_leaves_small_squares_whole(side: int):
    content = encoded(7, size=(side, side))
    raw = RawImage(content, "x")
    assert np.array_equal(to_pixels(raw, content, 32, "center224"), to_pixels(raw, content, 32, "squashed"))


def test_center224_cuts_a_banner_off_first():
    pixels = np.zeros((400, 300, 3), np.uint8)
    pixels[-120:] = 255
    content = saved(Image.fromarray(pixels))
    assert decode(RawImage(content, "x", crop_bottom=120), content, 16, "center224").pixels_HWC.max() == 0


@settings(max_examples=TRIES, deadline=None)
@given(
    kind=st.sampled_from(["JPEG", "PNG", "GIF", "BMP"]),
    cut=st.none() | st.integers(0, 2000),
    flips=st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 255)), max_size=6),
)
def test_damaged_pictures_give_pixels_or_one_sentence(kind: str, cut: int | None, flips: list[tuple[int, int]]):
    content = bytearray(encoded(3, kind=kind))
    for place, flip in flips:
        content[place % len(content)] ^= flip
    try:
        found = decoded(bytes(content[:cut]))
        assert found.pixels_HWC.shape == (8, 8, 3)
    except BadInput as error:
        assert "\n" not in str(error) and str(error).startswith("x: ")


def test_a_class_whose_images_are_all_alike_is_named(tmp_path: Path):
    root = folder_tree(tmp_path / "raw", "abc", 12)
    for number in range(12):  # files that differ, pictures that do not
        Image.new("L", (20, 20), 200).save(root / "b" / f"{number}.jpg", quality=60 + number)
    collection = collect("image_folder", "tiny", 0, {"root": root, "classes": [1, 1, 1], "extra": 4})
    with pytest.raises(BadInput, match=r"tiny: all \d+ images of class b are alike once packed, such as b/"):
        pack(collection, tmp_path / "out", size=8)
    assert not (tmp_path / "out").exists()
