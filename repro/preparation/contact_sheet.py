"""A picture of a dataset: some classes of every split as rows, their images side by side by role and domain."""

import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from repro.data.dataset import ROLES, SPLIT_OF_ROLE, SPLITS, Dataset
from repro.files import whole_file

TILE, GAP, GROUP_GAP = 56, 2, 10
LABEL_WIDTH, MARGIN = 300, 16
TITLE_HEIGHT, HEADING_HEIGHT = 44, 46
PAPER, INK, FAINT = "#ffffff", "#1b1f24", "#6b7280"


@dataclass(frozen=True)
class Column:
    """Images of one role and domain, side by side."""

    role: str
    domain: int


@dataclass(frozen=True)
class Section:
    """Rows (labels) that share a heading and the same columns."""

    heading: str
    labels: list[int]
    columns: list[Column]


def write_contact_sheet(path: Path, dataset: Dataset, *, rows: int = 6, width: int = 18) -> None:
    """Write a PNG with about `rows` classes per split and about `width` images per class.

    Classes are spread evenly over the domains where a class belongs to one, and over the label order otherwise;
    images are the first ones of their class, role and domain. Equal datasets give equal files.
    """
    sections = list(_sections(dataset, rows))
    image_width = max(_columns_width(section.columns, width) for section in sections)
    row_height = TILE + GAP
    height = TITLE_HEIGHT + sum(HEADING_HEIGHT + row_height * len(section.labels) for section in sections)
    sheet = Image.new("RGB", (2 * MARGIN + LABEL_WIDTH + image_width, height + 2 * MARGIN), PAPER)
    pen = ImageDraw.Draw(sheet)
    pen.text((MARGIN, MARGIN), _title(dataset), fill=INK, font=_font(20, bold=True))
    top = MARGIN + TITLE_HEIGHT
    for section in sections:
        _write_heading(pen, dataset, section, top, width)
        top += HEADING_HEIGHT
        for label in section.labels:
            _write_row(sheet, pen, dataset, label, section.columns, top, width)
            top += row_height
    with whole_file(path) as partial:
        sheet.save(partial, format="PNG")


def _sections(dataset: Dataset, rows: int) -> Iterator[Section]:
    """One section per split; one per split and domain where a class belongs to one domain."""
    per_class = dataset.header.domain_rule == "per_class"
    domains = range(len(dataset.header.domains))
    for split in SPLITS:
        roles = [role for role in ROLES if SPLIT_OF_ROLE[role] == split]
        for group in [[domain] for domain in domains] if per_class else [list(domains)]:
            labels = _labels_with_images(dataset, split, group)
            if not labels:
                continue
            named = f" · {dataset.header.domains[group[0]]}" if per_class else ""
            count = len(labels)
            picked = _spread(labels, -(-rows // len(domains)) if per_class else rows)
            columns = [Column(role, domain) for role in roles for domain in group]
            yield Section(f"{split} classes{named} ({len(picked)} of {count})", picked, columns)


def _labels_with_images(dataset: Dataset, split: str, domains: list[int]) -> list[int]:
    of_split = torch.isin(dataset.labels_N, dataset.labels_of(split))
    of_domain = torch.isin(dataset.domains_N, torch.tensor(domains))
    return dataset.labels_N[of_split & of_domain].unique().tolist()


def _spread(labels: list[int], count: int) -> list[int]:
    """Pick `count` labels at even distances."""
    places = np.linspace(0, len(labels) - 1, min(count, len(labels))).round().astype(int)
    return [labels[place] for place in places]


def _images_of(dataset: Dataset, label: int, column: Column, count: int) -> Tensor:
    rows_N = dataset.roles[column.role]
    wanted_N = (dataset.labels_N[rows_N] == label) & (dataset.domains_N[rows_N] == column.domain)
    return rows_N[wanted_N][:count]


def _title(dataset: Dataset) -> str:
    counts = " / ".join(f"{len(dataset.labels_of(split))} {split}" for split in SPLITS)
    height, width, channels = dataset.image_shape
    return f"{dataset.header.name}: {counts} classes, {len(dataset.labels_N):,} images of {height}×{width}×{channels}"


def _write_heading(pen: ImageDraw.ImageDraw, dataset: Dataset, section: Section, top: int, width: int) -> None:
    baseline = top + HEADING_HEIGHT - 22
    pen.text((MARGIN, baseline), section.heading, fill=INK, font=_font(13, bold=True))
    domain_varies = len({column.domain for column in section.columns}) > 1
    for left, column in zip(_lefts(section.columns, width), section.columns, strict=True):
        text = f"{column.role} · {dataset.header.domains[column.domain]}" if domain_varies else column.role
        right = left + _column_width(section.columns, width)
        pen.text((left, baseline), _fitted(text, right - left, _font(12)), fill=FAINT, font=_font(12))
        pen.line((left, top + HEADING_HEIGHT - 4, right, top + HEADING_HEIGHT - 4), fill=FAINT)


def _write_row(
    sheet: Image.Image,
    pen: ImageDraw.ImageDraw,
    dataset: Dataset,
    label: int,
    columns: list[Column],
    top: int,
    width: int,
) -> None:
    info = dataset.header.classes[label]
    room = LABEL_WIDTH - 12
    pen.text((MARGIN, top + 12), _fitted(info.name, room, _font(12)), fill=INK, font=_font(12))
    pen.text((MARGIN, top + 30), _fitted(info.supercategory, room, _font(11)), fill=FAINT, font=_font(11))
    for left, column in zip(_lefts(columns, width), columns, strict=True):
        rows_N = _images_of(dataset, label, column, _per_column(columns, width))
        for place, image_HWC in enumerate(dataset.pixels.of(rows_N.numpy())):
            sheet.paste(_tile(image_HWC), (left + place * (TILE + GAP), top))


def _tile(image_HWC: np.ndarray) -> Image.Image:
    """Give the image as a square tile: enlarged in whole pixels, or shrunk smoothly."""
    picture = Image.fromarray(image_HWC.squeeze(-1) if image_HWC.shape[-1] == 1 else image_HWC).convert("RGB")
    enlarged = max(picture.size) <= TILE
    return picture.resize((TILE, TILE), Image.Resampling.NEAREST if enlarged else Image.Resampling.LANCZOS)


def _per_column(columns: list[Column], width: int) -> int:
    return max(1, width // len(columns))


def _column_width(columns: list[Column], width: int) -> int:
    return _per_column(columns, width) * (TILE + GAP) - GAP


def _columns_width(columns: list[Column], width: int) -> int:
    return len(columns) * (_column_width(columns, width) + GROUP_GAP) - GROUP_GAP


def _lefts(columns: list[Column], width: int) -> list[int]:
    step = _column_width(columns, width) + GROUP_GAP
    return [MARGIN + LABEL_WIDTH + place * step for place in range(len(columns))]


def _fitted(text: str, room: int, font: ImageFont.FreeTypeFont) -> str:
    """Shorten to `room` pixels, with an ellipsis where something was cut."""
    if font.getlength(text) <= room:
        return text
    fits = bisect.bisect_left(range(len(text)), True, key=lambda end: font.getlength(f"{text[: end + 1]}…") > room)
    return f"{text[:fits].rstrip()}…"


def _font(size: int, *, bold: bool = False) -> ImageFont.FreeTypeFont:
    """Give the font that matplotlib brings along, so that the sheet is the same on every machine."""
    file = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"DejaVuSans{'-Bold' if bold else ''}.ttf"
    return ImageFont.truetype(str(file), size, layout_engine=ImageFont.Layout.BASIC)
