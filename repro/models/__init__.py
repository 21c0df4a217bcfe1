"""Networks that know tensors, not tasks. Importing this package registers the backbones with timm."""

from typing import Any

import timm
import torch
from torch import nn

from repro.errors import BadInput, one_line
from repro.models import convnet4, resnet12, resnet640

__all__ = ["convnet4", "create_backbone", "require_room", "resnet12", "resnet640"]


def create_backbone(name: str, in_channels: int, **options: Any) -> tuple[nn.Module, int]:
    """Build any timm model without its classifier: the module (images N×C×H×W → N×D) and D.

    `options` go to the model. Raises BadInput for a name that timm does not know, and for an option it does not have.
    """
    if not timm.is_model(name):
        raise BadInput(f"unknown backbone {name!r}; expected a timm model name such as {', '.join(own_backbones())}")
    try:
        backbone: Any = timm.create_model(name, in_chans=in_channels, num_classes=0, **options)
    except (TypeError, ValueError, RuntimeError) as error:  # timm's models say what they take only by raising
        raise BadInput(f"backbone {name} does not take the options {options} ({error}); correct them") from error
    # Some timm models widen the pooled features in their head; `head_hidden_size` is then what comes out.
    return backbone, getattr(backbone, "head_hidden_size", None) or backbone.num_features


def require_room(backbone: nn.Module, name: str, shape: tuple[int, int, int], option: str) -> None:
    """Raise BadInput where images of this shape (H, W, C) are too small for a backbone; `option` sets their size."""
    height, width, channels = shape
    was_training = backbone.training
    backbone.eval()
    try:
        with torch.no_grad():
            features_ND = backbone(torch.zeros(1, channels, height, width))
        reason = "" if torch.isfinite(features_ND).all() else "its features are not finite"
    except (
        RuntimeError,
        ValueError,
        AssertionError,
        ZeroDivisionError,
    ) as error:  # each model has its own way to say it
        reason = one_line(error)[:200]
    backbone.train(was_training)
    if reason:
        message = f"images of {height}×{width} pixels do not pass through backbone {name} ({reason})"
        raise BadInput(f"{message}; raise {option} or choose another backbone")


def own_backbones() -> list[str]:
    """Names of the backbones that this package registers."""
    return timm.list_models("castle_*")
