"""Variants of a cell in words, as they follow the name of its method: CASTLE without a dictionary."""

from repro.results.paper_claims import CLASSIFIERS, RATIOS


def _number(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


WORDS = {
    "scratch": "without pre-training",
    "postavg": "with Post-AVG",
    "vanilla": "with vanilla synthesis",
    **{variant: f"with {_number(ratio, 'shared base')} per seen class" for ratio, variant in RATIOS.items() if variant},
    RATIOS[0]: "without a dictionary",
    **{variant: f"with {_number(count, 'classifier')} per step" for count, variant in CLASSIFIERS.items()},
}


def varied(label: str, variant: str) -> str:
    """A method's name with a variant; one that nobody put into words stands as it is, in brackets."""
    if not variant:
        return label
    return f"{label} {WORDS[variant]}" if variant in WORDS else f"{label} ({variant})"
