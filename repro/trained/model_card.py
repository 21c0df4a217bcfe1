"""What a reader finds beside the weights: README.md as the Hugging Face hub lays it out, YAML first, then words.

It names neither time nor run nor machine, so that equal models have equal folders.
"""

import inspect
from typing import TYPE_CHECKING, Any

import yaml

from repro.methods.registry import method_class

if TYPE_CHECKING:
    from repro.trained.folders import Card

LIBRARY = "castle-repro"
TEXT = """---
{front}---

# {title}

{description}

| | |
|---|---|
{facts}

`model.safetensors` holds the weights, `model.json` how to build the module around them, `embeddings.safetensors` its
embeddings of the dataset's images by row, `origin.json` all settings and inputs down to the dataset, and `SHA256SUMS`
the content hash of each file. In a checkout of {library}:

```python
from pathlib import Path

from repro.trained.building import load_method

method = load_method(Path("this folder"), "{use}", {{}}, seed=0)
```

Made to compare methods on this dataset and these splits; it was not tried on anything else. Weights that {library}
trained have its licence; imported ones keep their authors'.
"""


def model_card(card: "Card", parameters: int) -> str:
    """The text of README.md for a model of so many trained numbers."""
    title, description, tags = _method(card.method) if card.method else _pretrained(card)
    front: dict[str, Any] = {
        "library_name": LIBRARY,
        "tags": ["image-classification", "few-shot-learning", "generalized-few-shot-learning", *tags],
    }
    facts = {
        "dataset": f"{card.dataset}, {card.seen_classes} seen classes, {card.channels} channels",
        "backbone": _with_options(card.backbone, card.backbone_options),
        "pre-trained with": _with_options(f"a {card.classifier} classifier", card.classifier_options),
        "options": _with_options("", card.options) or "none",
        "parameters": f"{parameters:,}",
    }
    return TEXT.format(
        front=yaml.safe_dump(front, sort_keys=False),
        title=f"{title} on {card.dataset}",
        description=description,
        facts="\n".join(f"| {name} | {value} |" for name, value in facts.items()),
        library=LIBRARY,
        use=card.method or "nearest_mean",
    )


def _method(name: str) -> tuple[str, str, list[str]]:
    """Title, description and tags: the words of the method's own file."""
    method = method_class(name)
    own = method.own_card()
    cited = f"{own.citation} <{own.url}>" if own.url else own.citation
    words = inspect.getdoc(inspect.getmodule(method)) or ""
    return own.label or name, "\n\n".join(filter(None, (words, cited))), [name]


def _pretrained(card: "Card") -> tuple[str, str, list[str]]:
    state = "left at its initial weights" if card.left_out else "pre-trained on the seen classes"
    return f"Backbone {card.backbone}", f"A backbone with its many-shot classifier, {state}.", ["pretrained"]


def _with_options(what: str, options: dict[str, Any]) -> str:
    listed = ", ".join(f"{name} = {value}" for name, value in sorted(options.items()))
    return ": ".join(filter(None, (what, listed)))
