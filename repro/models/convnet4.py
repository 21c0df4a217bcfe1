"""ConvNet-4: four times convolution, batch norm, ReLU, max-pooling; then the average over what is left of the image.

The 64-channel one is the small default of few-shot learning; the narrow one serves the embedded benchmark's 28×28
gray images. Parameter names equal those of the authors' checkpoints.
"""

from typing import Any

from timm.models import build_model_with_cfg, register_model
from torch import Tensor, nn

from repro.models.pooled import PooledBackbone, default_cfg

default_cfgs = {
    "castle_convnet4": default_cfg(84),
    "castle_convnet4_small": default_cfg(28, channels=1),
}


def block(inputs: int, outputs: int, *, activation: bool = True) -> nn.Sequential:
    """One of the four: halves the image."""
    convolution = nn.Conv2d(inputs, outputs, 3, padding=1)
    # ReLU after pooling: the same values and gradients, to the bit, from a quarter of the numbers.
    relu = [nn.ReLU(inplace=True)] if activation else []
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.MaxPool2d(2), *relu)


class ConvNet4(PooledBackbone):
    """Images N×C×H×W (H, W ≥ 16) → N×widths[-1]."""

    def __init__(
        self,
        in_chans: int = 3,
        num_classes: int = 0,
        widths: tuple[int, int, int, int] = (64, 64, 64, 64),
        final_activation: bool = True,
    ) -> None:
        """Without `final_activation` the last block has no ReLU, so features take both signs (DFSL's cosines)."""
        super().__init__(widths[-1], num_classes)
        *first, last = zip((in_chans, *widths[:-1]), widths, strict=True)
        self.encoder = nn.Sequential(*(block(*pair) for pair in first), block(*last, activation=final_activation))

    def forward_features(self, images_NCHW: Tensor) -> Tensor:
        """See `PooledBackbone.forward_features`."""
        return self.encoder(images_NCHW)


@register_model
def castle_convnet4(pretrained: bool = False, **arguments: Any) -> nn.Module:
    """ConvNet-4 with 64 channels throughout."""
    return build_model_with_cfg(ConvNet4, "castle_convnet4", pretrained, **arguments)


@register_model
def castle_convnet4_small(pretrained: bool = False, **arguments: Any) -> nn.Module:
    """The narrow ConvNet-4 of the embedded benchmark, 64-dimensional."""
    return build_model_with_cfg(ConvNet4, "castle_convnet4_small", pretrained, widths=(16, 32, 64, 64), **arguments)
