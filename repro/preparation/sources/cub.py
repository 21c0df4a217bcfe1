"""CUB-200-2011 (Wah et al., 2011): its lists, and whether its pictures are whole or cropped to the birds' boxes.

Copies passed around for few-shot learning are often cropped to the bounding boxes, which makes the task easier.
"""

from collections.abc import Iterator
from pathlib import Path

from PIL import Image

from repro.errors import BadInput
from repro.preparation.images import RawImage
from repro.preparation.listing import image_file, read_lines

LOOKED_AT = 400  # pictures, evenly spread
MOST = 0.8  # a share of the pictures that tells
SLACK = 2  # pixels, for boxes that were rounded
LONG_SIDE = 500  # pixels; nearly all whole pictures of CUB have it, as Flickr gave them
WHOLE, CROPPED, UNKNOWN = "whole pictures", "cropped to the bounding boxes", "not to be told whole or cropped"


def read_birds(root: Path) -> dict[str, list[RawImage]]:
    """CUB-200-2011: `images.txt`, `image_class_labels.txt`, `classes.txt` and `images/`."""
    home = _home(root)
    paths, labels, names = (
        dict(line.split(maxsplit=1) for line in _numbered(home / file))
        for file in ("images.txt", "image_class_labels.txt", "classes.txt")
    )
    classes: dict[str, list[RawImage]] = {}
    for number, path in paths.items():
        label = labels.get(number)
        if label not in names:
            seen = f"{home / 'image_class_labels.txt'}: gives image {number} the label {label}"
            raise BadInput(f"{seen}, expected one of the {len(names)} in classes.txt")
        images = classes.setdefault(names[label], [])
        images.append(image_file(home / "images" / path, root, home / "images.txt"))
    return classes


def cropping(root: Path) -> str:
    """Tell whole pictures from ones that were cropped to the birds' boxes, by the sizes that their files have.

    With `bounding_boxes.txt`, pictures as large as their boxes are cropped. Without it, whole pictures are known by
    their long side of 500 pixels; pictures that all have one size were resized and tell nothing.
    """
    home = _home(root)
    sizes = dict(_sizes(home))
    boxes = _boxes(home / "bounding_boxes.txt")
    known = [(size, boxes[number]) for number, size in sizes.items() if number in boxes]
    if len(set(sizes.values())) <= 1:
        return UNKNOWN
    if known:
        equal = sum(abs(width - w) <= SLACK and abs(height - h) <= SLACK for (width, height), (w, h) in known)
        inside = sum(w <= width + SLACK and h <= height + SLACK for (width, height), (w, h) in known)
        is_whole = equal <= (1 - MOST) * len(known) and inside >= MOST * len(known)
        return CROPPED if equal >= MOST * len(known) else WHOLE if is_whole else UNKNOWN
    long = sum(max(size) in range(LONG_SIDE - SLACK, LONG_SIDE + 1) for size in sizes.values())
    return WHOLE if long >= len(sizes) / 2 else CROPPED if long <= (1 - MOST) * len(sizes) else UNKNOWN


def _home(root: Path) -> Path:
    return root if (root / "images.txt").exists() else root / "CUB_200_2011"


def _sizes(home: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    """(number, width and height) of some pictures; what cannot be opened is told elsewhere."""
    lines = _numbered(home / "images.txt")
    for line in lines[:: max(1, len(lines) // LOOKED_AT)]:
        number, path = line.split(maxsplit=1)
        try:
            with Image.open(home / "images" / path, formats=["JPEG", "PNG"]) as image:
                yield number, image.size
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning):
            continue


def _boxes(file: Path) -> dict[str, tuple[float, float]]:
    """Number → width and height of the bird's box; nothing where the file is absent. Raises BadInput."""
    if not file.exists():
        return {}
    boxes = {}
    for line in read_lines(file, "CUB-200-2011's boxes: number, x, y, width and height"):
        try:
            number, _, _, width, height = line.split()
            boxes[number] = float(width), float(height)
        except ValueError as error:
            raise BadInput(f"{file}: has the line {line!r}, expected a number, x, y, width and height") from error
    return boxes


def _numbered(file: Path) -> list[str]:
    lines = read_lines(file, "CUB-200-2011's list of numbers and names")
    for line in lines:
        if len(line.split(maxsplit=1)) != 2:
            raise BadInput(f"{file}: has the line {line!r}, expected a number and a name")
    return lines
