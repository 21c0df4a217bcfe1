"""Methods on top of stored models: started from pre-training, trained, or adapting what was trained."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from repro.data.dataset import Dataset
from repro.data.episodes import draw_exemplars
from repro.data.seeding import derive_seed
from repro.errors import BadInput
from repro.evaluation.embed import Embedded, embed
from repro.methods.base import Method
from repro.methods.registry import method_class
from repro.models import create_backbone
from repro.models.pretrained import Pretrained
from repro.models.weights import load_strictly
from repro.options import check_options
from repro.trained.folders import WEIGHTS, Card, build_pretrained, read_card


def check_method_options(name: str, options: dict[str, Any], place: str) -> None:
    """Raise BadInput, which begins with `place`, for options that the method does not have."""
    method = method_class(name)
    takers = [method, *([method_class(method.base_method)] if method.base_method else [])]
    check_options(place, options, *takers, given=("backbone", "dim", "seen_classes"))


def build_method(card: Card, name: str, options: dict[str, Any], seed: int) -> Method:
    """A method with initial weights drawn from the seed; raises BadInput for an option it does not have."""
    torch.manual_seed(derive_seed(seed, "weights", card.dataset, name))
    backbone, dim = create_backbone(card.backbone, card.channels, **card.backbone_options)
    check_method_options(name, options, f"method {name}")
    return method_class(name)(backbone, dim, card.seen_classes, **options)


def start_method(folder: Path, name: str, options: dict[str, Any], seed: int) -> tuple[Card, Method]:
    """A method on the pre-trained backbone in `folder`, its seen classifier taken over."""
    card = read_card(folder)
    pretrained = build_pretrained(card, seed)
    load_strictly(pretrained, folder / WEIGHTS)
    needed = method_class(name).pretraining
    if (card.classifier == "cosine") != (needed == "cosine"):
        raise BadInput(f"{folder} was pre-trained as {card.classifier}, {name} starts from {needed}")
    return replace(card, method=name, options=options), method_on(pretrained, card, name, options, seed)


def method_on(pretrained: Pretrained, card: Card, name: str, options: dict[str, Any], seed: int) -> Method:
    """A method that takes over a pre-trained backbone and its seen classifier."""
    method = build_method(card, name, options, seed)
    method.backbone.load_state_dict(pretrained.backbone.state_dict())
    _count_batches_anew(method.backbone)
    method.load_pretrained(pretrained.classifier.logit_weight_SD())
    return method


def _count_batches_anew(backbone: nn.Module) -> None:
    """Set batch norm's counts of training batches to 0: DropBlock's ramp begins again in meta-training, as released."""
    for module in backbone.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.num_batches_tracked is not None:
            module.num_batches_tracked.zero_()


def load_method(folder: Path, name: str, options: dict[str, Any], seed: int) -> Method:
    """A method ready to be measured: trained in `folder`, adapting what was, or on the pre-trained backbone there.

    It has the options that were trained with, and `options` besides or instead.
    """
    card = read_card(folder)
    if card.method is None:
        _, method = start_method(folder, name, options, seed)
        if base := method.base_method:
            raise BadInput(
                f"{folder} holds a pre-trained backbone, {name} needs a trained {base}; give the folder of one"
            )
        return method
    method = build_method(card, name, {**card.options, **options}, seed)
    if name == card.method:
        load_strictly(method, folder / WEIGHTS)
        return method
    base = getattr(method, "base", None)
    if method.base_method != card.method or not isinstance(base, nn.Module):
        raise BadInput(f"{folder} holds a trained {card.method}, {name} needs a trained {method.base_method}")
    load_strictly(base, folder / WEIGHTS)
    return method


def remember(method: Method, embedded: Embedded, dataset: Dataset, seed: int) -> None:
    """Hand a method the training images that its inference needs."""
    if method.remembers:
        rows_SM = draw_exemplars(dataset, method.remembers, seed)
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
