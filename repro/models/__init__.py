"""Networks that know tensors, not tasks. Importing this package registers the backbones with timm."""

from typing import Any

import timm
from torch import nn

from repro.errors import BadInput
from repro.models import convnet4, resnet12, resnet640

__all__ = ["convnet4", "create_backbone", "resnet12", "resnet640"]


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


def own_backbones() -> list[str]:
    """Names of the backbones that this package registers."""
    return timm.list_models("castle_*")
