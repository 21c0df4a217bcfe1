"""Jinja for TeX, HTML and Markdown; whatever a template prints is escaped, unless it says that it is markup already."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError

from repro.errors import BadInput
from repro.files import whole_file

_TEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "–": "--",
    "—": "---",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "…": r"\dots{}",
    "→": r"$\rightarrow$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "∪": r"$\cup$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "≈": r"$\approx$",
    "⁻": "$^{-}$",
    "†": r"\textdagger{}",
    "‡": r"\textdaggerdbl{}",
    "Δ": r"$\Delta$",
    "Θ": r"$\Theta$",
    "Σ": r"$\Sigma$",
    "α": r"$\alpha$",
    "φ": r"$\varphi$",
}
_SPECIAL = re.compile(r"[^ !'()*+,\-./0-9:;=?@A-Z\[\]a-z]")


class Markup(str):
    """Text that is TeX already."""


def tex(value: Any) -> str:
    """Escape for TeX. Signs that TeX's text fonts lack are spelled as code points; line breaks become spaces."""
    return value if isinstance(value, Markup) else _SPECIAL.sub(_tex_character, str(value))


def _tex_character(match: re.Match[str]) -> str:
    character = match.group()
    if character in _TEX:
        return _TEX[character]
    return " " if character.isspace() else f"U+{ord(character):04X}"


@contextmanager
def template_errors_as_bad_input(folder: Path) -> Iterator[None]:
    """Turn a template of the folder that is missing or cannot be filled into BadInput that names it."""
    try:
        yield
    except TemplateError as error:
        name = getattr(error, "name", None) or "a template"
        message = f"{folder}: {name} cannot be filled ({error.message})"
        raise BadInput(f"{message}; restore it with `git checkout {folder}`") from error


def tex_environment(folder: Path) -> Environment:
    r"""Templates with \VAR{…}, \BLOCK{…} and \#{…}, so that they stay readable as TeX."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        block_start_string=r"\BLOCK{",
        block_end_string="}",
        variable_start_string=r"\VAR{",
        variable_end_string="}",
        comment_start_string=r"\#{",
        comment_end_string="}",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        finalize=tex,
    )
    environment.filters["markup"] = Markup
    return environment


def markdown(value: Any) -> str:
    """Escape for a Markdown table; line breaks become spaces."""
    return re.sub(r"([\\`*_\[\]<|~&])", r"\\\1", " ".join(str(value).split()))


def markdown_environment(folder: Path) -> Environment:
    """Templates with Jinja's own delimiters and Markdown escaping."""
    return _plain_environment(folder, finalize=markdown)


def html_environment(folder: Path) -> Environment:
    """Templates with Jinja's own delimiters and HTML escaping."""
    return _plain_environment(folder, autoescape=True)


def _plain_environment(folder: Path, **escaping: Any) -> Environment:
    return Environment(
        loader=FileSystemLoader(folder),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        **escaping,
    )


def write_page(file: Path, text: str) -> None:
    """Write what a template gave, whole or not at all."""
    with whole_file(file) as partial:
        partial.write_text(text, encoding="utf-8")
