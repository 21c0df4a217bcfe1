"""Backbones whose steps take this machine seconds: a deep one without a GPU. They are rehearsed on fewer images.

Pre-training gets a smaller batch, a method fewer shots and queries, and of the images that are only embedded some are;
the others take over their embeddings. Predictions count the images that were computed.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from repro.evaluation import embed as embedding
from repro.evaluation import validation
from repro.trained import building, folders
from repro.training import embedding as step_embedding
from repro.training import prototypes
from tools.benchmarks.costs import Backbone, backbone
from tools.rehearsing.sizes import DatasetSize
from tools.rehearsing.work import Work

STEP = 5e11  # operations that take a CPU seconds
EMBEDDED = 1e12  # operations of the images that are embedded at once
FEWEST = 8  # images: batch norm needs several
EMBED = ((embedding, validation, folders, building), "embed")  # where a stage calls what embeds, and its name
EMBED_ROWS = ((step_embedding, prototypes), "embed_rows")


def heavy_backbones(work: Work, full: Mapping[str, DatasetSize], device: torch.device) -> dict[str, Backbone]:
    """By dataset, those with which a step of pre-training is heavy here."""
    if device.type != "cpu":
        return {}
    found = {name: backbone(work.resolver.backbone(name).name, size.size) for name, size in full.items()}
    return {name: one for name, one in found.items() if work.resolver.pretraining(name).batch * one.step > STEP}


def images_at_most(one: Backbone) -> int:
    """Images of a step that is not heavy."""
    return max(FEWEST, int(STEP / one.step))


def most_embedded(one: Backbone) -> int:
    """Images that are embedded at once."""
    return max(FEWEST, int(EMBEDDED / one.forward))


def embed_at_most(most: int) -> None:
    """Let the stages of this process embed no more images at once."""
    for modules, name in (EMBED, EMBED_ROWS):
        few = _at_most(getattr(modules[0], name), most)
        for module in modules:
            setattr(module, name, few)


def _at_most(embed: Callable[..., Tensor], most: int) -> Callable[..., Tensor]:
    def embedded(network: Any, images: Any, rows_N: Tensor, *given: Any, **named: Any) -> Tensor:
        if len(rows_N) <= most:
            return embed(network, images, rows_N, *given, **named)
        some_M = torch.arange(most) * len(rows_N) // most
        computed_MD = embed(network, images, rows_N[some_M], *given, **named)
        return computed_MD[torch.searchsorted(some_M, torch.arange(len(rows_N)), right=True) - 1]

    return embedded
