"""The wide ResNet of Qiao et al. (2018): a stem, then stages of 160, 320 and 640 channels, for the multi-domain sets.

Each stage has four basic blocks and starts with stride 2. Parameter names equal those of the authors' checkpoints.
"""

from typing import Any

import torch.nn.functional as F
from timm.models import build_model_with_cfg, register_model
from torch import Tensor, nn

from repro.models.pooled import PooledBackbone, default_cfg, initialise, shortcut

default_cfgs = {"castle_resnet640": default_cfg(84)}


class BasicBlock(nn.Module):
    """Two 3×3 convolutions; the shortcut is projected where width or stride change."""

    def __init__(self, inputs: int, outputs: int, stride: int, *, activation: bool = True) -> None:
        """Without `activation` the sum of both branches is given as it is."""
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        changes = stride != 1 or inputs != outputs
        self.downsample = shortcut(inputs, outputs, stride) if changes else nn.Identity()
        self.last = nn.ReLU() if activation else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        return self.last(self.bn2(self.conv2(out)) + self.downsample(x))


def stage(inputs: int, outputs: int, blocks: int, *, final_activation: bool = True) -> nn.Sequential:
    """Basic blocks, the first of which halves the image."""
    *first, last = [(inputs, outputs, 2), *[(outputs, outputs, 1)] * (blocks - 1)]
    return nn.Sequential(*(BasicBlock(*shape) for shape in first), BasicBlock(*last, activation=final_activation))


class ResNet640(PooledBackbone):
    """Images N×C×H×W (H, W ≥ 8) → N×640."""

    def __init__(
        self,
        in_chans: int = 3,
        num_classes: int = 0,
        widths: tuple[int, int, int] = (160, 320, 640),
        blocks: int = 4,
        final_activation: bool = True,
    ) -> None:
        """Without `final_activation` the last block has no ReLU, so features take both signs (DFSL's cosines)."""
        super().__init__(widths[-1], num_classes)
        stem = widths[0] // 2
        self.conv1 = nn.Conv2d(in_chans, stem, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(stem)
        self.layer1 = stage(stem, widths[0], blocks)
        self.layer2 = stage(widths[0], widths[1], blocks)
        self.layer3 = stage(widths[1], widths[2], blocks, final_activation=final_activation)
        initialise(self, "relu")

    def forward_features(self, images_NCHW: Tensor) -> Tensor:
        """See `PooledBackbone.forward_features`."""
        stem = F.relu(self.bn1(self.conv1(images_NCHW)))
        return self.layer3(self.layer2(self.layer1(stem)))


@register_model
def castle_resnet640(pretrained: bool = False, **arguments: Any) -> nn.Module:
    """The 640-dimensional ResNet of the two multi-domain benchmarks."""
    return build_model_with_cfg(ResNet640, "castle_resnet640", pretrained, **arguments)
