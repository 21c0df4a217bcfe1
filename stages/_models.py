"""Models between stages: a folder with weights, a card that says how to build them, and the embeddings of the images.

The card of a pre-trained backbone and that of a trained method differ in what the weights belong to; `load` gives any
method on top of either.
"""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from repro.data.dataset import Dataset
from repro.data.seeding import derive_seed, generator
from repro.errors import BadInput
from repro.evaluation.cell import rows_needed
from repro.evaluation.embed import Embedded, embed, read_embeddings, write_embeddings
from repro.files import sha256
from repro.methods.base import Method
from repro.methods.registry import method_class
from repro.models import create_backbone
from repro.training.pretrain import Pretrained
from repro.training.weights import load_strictly, save_weights

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


def build_pretrained(card: Card, seed: int) -> Pretrained:
    """Backbone and many-shot classifier with initial weights drawn from the seed."""
    torch.manual_seed(derive_seed(seed, "weights", card.dataset, card.classifier))
    backbone, dim = create_backbone(card.backbone, card.channels, **card.backbone_options)
    return Pretrained(backbone, dim, card.seen_classes, card.classifier, **card.classifier_options)


def build_method(card: Card, name: str, options: dict[str, Any], seed: int) -> Method:
    """A method with initial weights drawn from the seed; raises BadInput for an option it does not have."""
    torch.manual_seed(derive_seed(seed, "weights", card.dataset, name))
    backbone, dim = create_backbone(card.backbone, card.channels, **card.backbone_options)
    try:
        return method_class(name)(backbone, dim, card.seen_classes, **options)
    except TypeError as error:
        raise BadInput(f"method {name} does not take the options {sorted(options)} ({error})") from error


def start_method(folder: Path, name: str, options: dict[str, Any], seed: int) -> tuple[Card, Method]:
    """A method on the pre-trained backbone in `folder`, its seen classifier taken over."""
    card = read_card(folder)
    pretrained = build_pretrained(card, seed)
    load_strictly(pretrained, folder / "model.safetensors")
    method = build_method(card, name, options, seed)
    if (card.classifier == "cosine") != (method.pretraining == "cosine"):
        raise BadInput(f"{folder} was pre-trained as {card.classifier}, {name} starts from {method.pretraining}")
    method.backbone.load_state_dict(pretrained.backbone.state_dict())
    method.load_pretrained(pretrained.classifier.logit_weight_SD())
    return replace(card, method=name, options=options), method


def load_method(folder: Path, name: str, options: dict[str, Any], seed: int) -> Method:
    """A method ready to be measured: trained in `folder`, adapting what was, or on the pre-trained backbone there.

    A trained method keeps the options it was trained with, and so does one that is adapted.
    """
    card = read_card(folder)
    if card.method is None:
        return start_method(folder, name, options, seed)[1]
    if name == card.method:
        method = build_method(card, name, card.options, seed)
        load_strictly(method, folder / "model.safetensors")
        return method
    method = build_method(card, name, {**card.options, **options}, seed)
    base = getattr(method, "base", None)
    if method.base_method != card.method or not isinstance(base, nn.Module):
        raise BadInput(f"{folder} holds a trained {card.method}, {name} needs a trained {method.base_method}")
    load_strictly(base, folder / "model.safetensors")
    return method


def write_model(
    folder: Path, module: Pretrained | Method, card: Card, dataset: Dataset, device: torch.device, seed: int
) -> None:
    """Write weights, card, and the embeddings of the images that an evaluation needs, each embedded once."""
    save_weights(module, folder / "model.safetensors")
    (folder / "model.json").write_text(json.dumps(asdict(card), indent=1, sort_keys=True) + "\n")
    rows_N = rows_needed(dataset, exemplar_rows(dataset, seed, EXEMPLARS))
    embeddings_ND = embed(module.backbone, dataset, rows_N, device)
    model = sha256(folder / "model.safetensors")
    write_embeddings(folder / "embeddings.safetensors", Embedded(rows_N, embeddings_ND, model))


def read_card(folder: Path) -> Card:
    """Read a model's card; raises BadInput where there is none."""
    try:
        return Card(**json.loads((folder / "model.json").read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise BadInput(f"{folder}: no readable model.json ({error}); run the stage that trains it again") from error


def exemplar_rows(dataset: Dataset, seed: int, number: int) -> Tensor:
    """`number` training images of every seen class (S×number), the same for every model; fewer where a class has fewer.

    A smaller number gives the beginning of a larger one.
    """
    rows_N = dataset.roles["train"]
    per_class = [rows_N[dataset.labels_N[rows_N] == label] for label in range(dataset.seen_classes)]
    random = generator(seed, "exemplars", dataset.header.name)
    shuffled = [rows[torch.randperm(len(rows), generator=random)] for rows in per_class]
    fewest = min(map(len, shuffled))
    return torch.stack([rows[: min(number, fewest)] for rows in shuffled])


def read_embedded(folder: Path) -> Embedded:
    """The stored embeddings, checked against the weights beside them."""
    return read_embeddings(folder / "embeddings.safetensors", sha256(folder / "model.safetensors"))


def remember(method: Method, embedded: Embedded, dataset: Dataset, seed: int) -> None:
    """Hand a method the training images that its inference needs."""
    if method.remembers:
        rows_SM = exemplar_rows(dataset, seed, method.remembers)
        method.remember(embedded.of(rows_SM))


def completed(embedded: Embedded, method: Method, dataset: Dataset, rows: Tensor, device: torch.device) -> Embedded:
    """The same embeddings and those of `rows` that are not among them yet."""
    missing_N = rows.flatten().long().unique()
    missing_N = missing_N[~torch.isin(missing_N, embedded.rows_N)]
    if not len(missing_N):
        return embedded
    rows_N, order_N = torch.cat([embedded.rows_N, missing_N]).sort()
    added_ND = embed(method.backbone, dataset, missing_N, device)
    return replace(embedded, rows_N=rows_N, embeddings_ND=torch.cat([embedded.embeddings_ND, added_ND])[order_N])
