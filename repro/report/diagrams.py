"""F1-F4: one scene per diagram, printed as TikZ for the paper and as SVG for the report.

A scene is a Jinja template that yields YAML: its width and height in centimetres (origin top left), boxes, arrows and
texts. Its words take every count from the data at hand.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from repro.report.facts import DatasetFacts
from repro.report.templates import html_environment, tex_environment

# Fill and outline of each role, hexadecimal without the sign: tints of seaborn's colour-blind palette.
FILLS = {
    "seen": ("D6E6F5", "0173B2"),
    "unseen": ("FCE8CD", "DE8F05"),
    "extra": ("F9DACB", "D55E00"),
    "made": ("D5EFE5", "029E73"),
    "plain": ("F4F4F4", "777777"),
}


@dataclass(frozen=True)
class Box:
    """A rectangle with lines of text in its middle."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    outline: str
    lines: tuple[str, ...]

    @property
    def middle(self) -> tuple[float, float]:
        """Its centre."""
        return self.x + self.width / 2, self.y + self.height / 2


@dataclass(frozen=True)
class Arrow:
    """A polyline through (x, y) points, with a head at its end."""

    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Text:
    """A line of text centred at a point."""

    x: float
    y: float
    words: str
    bold: bool


@dataclass(frozen=True)
class Scene:
    """A diagram, free of any output format."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    texts: tuple[Text, ...]


def read_scene(templates: Path, key: str, facts: DatasetFacts, way: int, query: int) -> Scene:
    """Fill the scene of one diagram with the counts of a dataset and of its tasks."""
    environment = html_environment(templates / "diagrams")
    environment.autoescape = False  # YAML, not HTML: every word goes through |tojson
    text = environment.get_template(f"{key}.yaml").render(facts=facts, way=way, query=query)
    return _scene(yaml.safe_load(text))


def _scene(facts: dict[str, Any]) -> Scene:
    return Scene(
        facts["width"],
        facts["height"],
        tuple(_box(**box) for box in facts["boxes"]),
        tuple(Arrow(tuple((x, y) for x, y in points)) for points in facts["arrows"]),
        tuple(_text(**text) for text in facts["texts"]),
    )


def _box(at: list[float], fill: str, lines: list[str]) -> Box:
    x, y, width, height = at
    inside, outline = FILLS[fill]
    return Box(x, y, width, height, inside, outline, tuple(lines))


def _text(at: list[float], words: str, bold: bool = False) -> Text:
    x, y = at
    return Text(x, y, words, bold)


def as_tikz(templates: Path, scene: Scene) -> str:
    """The scene as a tikzpicture."""
    return tex_environment(templates).get_template("diagram.tikz").render(scene=scene)


def as_svg(templates: Path, scene: Scene, title: str) -> str:
    """The scene as a stand-alone SVG; `title` is read to those who cannot see it."""
    return html_environment(templates).get_template("diagram.svg").render(scene=scene, title=title, unit=40)
