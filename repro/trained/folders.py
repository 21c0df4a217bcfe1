"""Models between stages: a folder with weights, a card that says how to build them, and the embeddings of the images.

README.md says the same to people, as the Hugging Face hub lays out a model (`model_card.py`).

A card without a method is that of a pre-trained backbone; `methods.py` builds methods on top of either.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from repro.data.dataset import Dataset
from repro.data.episodes import draw_exemplars
from repro.data.seeding import derive_seed
from repro.errors import BadInput
from repro.evaluation.embed import Embedded, embed, read_embeddings, rows_needed, write_embeddings
from repro.files import MAKE_AGAIN, check_seal, seal, sha256, whole_file
from repro.models import create_backbone
from repro.models.pretrained import Pretrained
from repro.models.weights import save_weights
from repro.options import check_options
from repro.trained.model_card import model_card

CARD, WEIGHTS, EMBEDDINGS = "model.json", "model.safetensors", "embeddings.safetensors"
README = "README.md"
FEW_SHOT = "few_shot"  # a model of its own inside a method's folder, where other weights were best in few-shot use
EXEMPLARS = 100  # training images per seen class that every model embeds: the most that any method remembers


@dataclass(frozen=True)
class Card:
    """How to build a model: backbone, sizes, and what stands on the backbone (`method`, or None for pre-training)."""

    dataset: str
    backbone: str
    channels: int
    seen_classes: int
    classifier: str
    backbone_options: dict[str, Any] = field(default_factory=dict)
    classifier_options: dict[str, Any] = field(default_factory=dict)
    method: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    left_out: dict[str, Any] = field(default_factory=dict)  # of random weights: steps and optimiser of pre-training


def build_pretrained(card: Card, seed: int) -> Pretrained:
    """Backbone and many-shot classifier with initial weights drawn from the seed."""
    torch.manual_seed(derive_seed(seed, "weights", card.dataset, card.classifier))
    backbone, dim = create_backbone(card.backbone, card.channels, **card.backbone_options)
    return Pretrained(backbone, dim, card.seen_classes, card.classifier, **card.classifier_options)


def write_model(folder: Path, module: nn.Module, card: Card, dataset: Dataset, device: torch.device, seed: int) -> None:
    """Write weights, card, and the backbone's embeddings of the images that an evaluation needs, each embedded once."""
    save_weights(module, folder / WEIGHTS)
    write_card(folder, card)
    with whole_file(folder / README) as partial:
        partial.write_text(model_card(card, sum(each.numel() for each in module.parameters())), encoding="utf-8")
    rows_N = rows_needed(dataset, draw_exemplars(dataset, EXEMPLARS, seed))
    embeddings_ND = embed(module.get_submodule("backbone"), dataset, rows_N, device)
    write_embeddings(folder / EMBEDDINGS, Embedded(rows_N, embeddings_ND, sha256(folder / WEIGHTS)))
    seal(folder)


def write_card(folder: Path, card: Card) -> None:
    """Write a model's card beside its weights."""
    with whole_file(folder / CARD) as partial:
        partial.write_text(json.dumps(asdict(card), indent=1, sort_keys=True) + "\n")


def read_card(folder: Path) -> Card:
    """Read a model's card; raises BadInput where there is none."""
    try:
        facts = json.loads((folder / CARD).read_text())
        card = Card(**facts)
        check_options("its card", facts, Card)
        return card
    except (OSError, ValueError, TypeError) as error:
        raise BadInput(f"{folder}: no readable {CARD} ({error}); {MAKE_AGAIN}") from error


def check_model(folder: Path) -> str:
    """The content hash of a model's weights; raises BadInput where they or the card are not what was written."""
    return check_seal(folder, CARD, WEIGHTS)[WEIGHTS]


def read_embedded(folder: Path) -> Embedded:
    """The stored embeddings, checked like the model beside them, whose they must be."""
    read_card(folder)
    model = check_model(folder)
    check_seal(folder, EMBEDDINGS)
    return read_embeddings(folder / EMBEDDINGS, model)
