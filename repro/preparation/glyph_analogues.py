"""The four analogues of the paper's datasets, as data: which characters, which domains, how each domain looks.

Structure lives here; every number that a user may vary (classes, images, size, strengths) is a parameter.
"""

from dataclasses import dataclass

from repro.data.dataset import SPLITS, DomainRule


@dataclass(frozen=True)
class Look:
    """How images of a domain differ from the plain ones. Strengths multiply the dataset's own."""

    light_ink: float = 0.5  # probability of light ink on dark paper
    contrast: tuple[float, float] = (0.45, 1.0)  # |ink − paper|, of the full range
    outline: float = 0.0  # 0: filled glyph, 1: only its outline
    hatching: float = 0.0  # amplitude of the stripes on the paper, as a share of the contrast
    background: float = 1.0
    clutter: float = 1.0
    occlusion: float = 1.0
    noise: float = 1.0


@dataclass(frozen=True)
class Domain:
    """Images of one origin: a look, and the font families that draw it."""

    name: str
    families: tuple[str, ...] = ("sans", "serif", "mono", "stix")
    look: Look = Look()


@dataclass(frozen=True)
class Group:
    """Characters that belong together: code-point ranges (ends included), their domains, the splits they may join."""

    name: str
    ranges: tuple[tuple[int, int], ...]
    domains: tuple[str, ...] = ("all",)
    splits: tuple[str, ...] = SPLITS


@dataclass(frozen=True)
class Analogue:
    """A dataset's structure. A split takes equally many classes from each of its groups; a class has images in all
    domains of its group. Group names are kept as super-categories."""

    groups: tuple[Group, ...]
    domains: tuple[Domain, ...] = (Domain("all"),)
    domain_rule: DomainRule = "none"


LATIN = ((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0xFF))
LATIN_EXTENDED = ((0x100, 0x24F), (0xA722, 0xA7FF))
PHONETIC = ((0x250, 0x2AF), (0x1D00, 0x1D7F))
GREEK = ((0x370, 0x3FF),)
CYRILLIC = ((0x400, 0x481),)
CYRILLIC_EXTENDED = ((0x48A, 0x52F), (0xA640, 0xA69F))
ARMENIAN = ((0x531, 0x58F),)
ARABIC = ((0x620, 0x6FF),)
NKO = ((0x7C0, 0x7FF),)
LAO = ((0xE80, 0xEFF),)
GEORGIAN = ((0x10A0, 0x10FF),)
SYLLABICS = ((0x1400, 0x167F),)
TIFINAGH = ((0x2D30, 0x2D7F),)
PUNCTUATION = ((0xA1, 0xBF), (0x2010, 0x205E), (0x20A0, 0x20BF))
ARROWS = ((0x2190, 0x21FF),)
MATHEMATICAL = ((0x2200, 0x22FF),)
MATHEMATICAL_RELATIONS = ((0x223C, 0x228B), (0x22CD, 0x22E9))
MATHEMATICAL_OPERATORS = ((0x2200, 0x223B), (0x228C, 0x22CC), (0x22EA, 0x22FF))
TECHNICAL = ((0x2300, 0x23FF),)
BOX_DRAWING = ((0x2500, 0x257F),)
GEOMETRIC = ((0x25A0, 0x25FF),)
SYMBOLS = ((0x2600, 0x26FF),)
DINGBATS = ((0x2701, 0x27BF),)

# Drawn beside the glyph to distract; ASCII digits and signs belong to no group, so no class is ever clutter.
CLUTTER = tuple(range(0x23, 0x40))

ANALOGUES = {
    "mini": Analogue(
        groups=(
            Group("", (*LATIN, *PHONETIC, *GREEK, *CYRILLIC, *ARMENIAN, *GEORGIAN, *ARROWS, *MATHEMATICAL, *GEOMETRIC)),
        ),
    ),
    "tiered": Analogue(
        groups=(
            Group("Latin", LATIN, splits=("seen",)),
            Group("Latin extended", LATIN_EXTENDED, splits=("seen",)),
            Group("phonetic", PHONETIC, splits=("seen",)),
            Group("Greek and Coptic", GREEK, splits=("seen",)),
            Group("Cyrillic", CYRILLIC, splits=("seen",)),
            Group("Cyrillic extended", CYRILLIC_EXTENDED, splits=("seen",)),
            Group("mathematical operators", MATHEMATICAL_OPERATORS, splits=("seen",)),
            Group("mathematical relations", MATHEMATICAL_RELATIONS, splits=("seen",)),
            Group("technical", TECHNICAL, splits=("seen",)),
            Group("box drawing", BOX_DRAWING, splits=("seen",)),
            Group("geometric shapes", GEOMETRIC, splits=("seen",)),
            Group("symbols", SYMBOLS, splits=("seen",)),
            Group("Armenian", ARMENIAN, splits=("val",)),
            Group("punctuation and currency", PUNCTUATION, splits=("val",)),
            Group("arrows", ARROWS, splits=("val",)),
            Group("Tifinagh", TIFINAGH, splits=("val",)),
            Group("Georgian", GEORGIAN, splits=("test",)),
            Group("Arabic", ARABIC, splits=("test",)),
            Group("N'Ko", NKO, splits=("test",)),
            Group("Lao", LAO, splits=("test",)),
            Group("Canadian syllabics", SYLLABICS, splits=("test",)),
            Group("dingbats", DINGBATS, splits=("test",)),
        ),
    ),
    "heterogeneous": Analogue(
        groups=(
            Group("Latin", (*LATIN, *LATIN_EXTENDED, *PHONETIC), domains=("Latin",)),
            Group("Eastern", (*CYRILLIC, *CYRILLIC_EXTENDED, *ARMENIAN, *GEORGIAN), domains=("Eastern",)),
            Group("mathematics", MATHEMATICAL, domains=("mathematics",)),
            Group("syllabics", SYLLABICS, domains=("syllabics",)),
            Group("symbols", (*SYMBOLS, *DINGBATS), domains=("symbols",)),
        ),
        domains=(
            Domain("Latin", look=Look(light_ink=0.0, background=0.5)),
            Domain("Eastern", look=Look(light_ink=1.0, background=0.5, hatching=0.35)),
            Domain("mathematics", look=Look(light_ink=0.0, outline=1.0, background=0.5)),
            Domain("syllabics", look=Look(light_ink=1.0, clutter=1.4, noise=1.6)),
            Domain("symbols", look=Look(light_ink=0.0, contrast=(0.4, 0.7), hatching=0.25)),
        ),
        domain_rule="per_class",
    ),
    "office": Analogue(
        groups=(
            Group(
                "",
                (*LATIN, *PHONETIC, *GREEK, *CYRILLIC, *ARROWS, *MATHEMATICAL),
                domains=("clipart", "product", "real"),
            ),
        ),
        domains=(
            Domain("clipart", ("sans",), Look(light_ink=0.0, contrast=(0.7, 1.0), outline=1.0, background=0.3)),
            Domain("product", ("serif",), Look(light_ink=0.0, background=0.0, clutter=0.0, noise=0.5)),
            Domain("real", ("stix",), Look(clutter=1.3, background=1.3)),
        ),
        domain_rule="per_image",
    ),
}
