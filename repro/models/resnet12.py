"""ResNet-12 as MetaOptNet (Lee et al., 2019) has it: the backbone of Mini- and TieredImageNet.

Four blocks of three 3×3 convolutions, each block halving the image by max-pooling. The first two blocks drop single
activations, the last two drop squares (DropBlock), at a rate that grows linearly over the first training steps.
Parameter names equal those of the authors' checkpoints.
"""

from typing import Any

import torch
import torch.nn.functional as F
from timm.models import build_model_with_cfg, register_model
from torch import Tensor, nn

from repro.models.pooled import PooledBackbone, default_cfg, initialise, shortcut

default_cfgs = {"castle_resnet12": default_cfg(84)}
SLOPE = 0.1  # of the leaky ReLU below zero


def drop_block(features_NCHW: Tensor, rate: Tensor, size: int) -> Tensor:
    """Zero size×size squares of each channel, a share `rate` of all activations, and rescale what stays.

    `rate` is a scalar tensor, so that a schedule kept on the device costs no synchronisation.
    """
    count, channels, height, width = features_NCHW.shape
    size = min(size, height, width)
    corners_H, corners_W = height - size + 1, width - size + 1
    # Ghiasi et al. (2018), Eq. 1: corners are drawn so that the squares grown from them cover `rate` of the area.
    density = rate * height * width / size**2 / (corners_H * corners_W)
    corner = torch.rand(count, channels, corners_H, corners_W, device=features_NCHW.device) < density
    padded = F.pad(corner.to(features_NCHW.dtype), (size - 1,) * 4)
    keep = 1 - F.max_pool2d(padded, size, stride=1)
    return features_NCHW * keep * (keep.numel() / keep.sum().clamp(min=1))


class Block(nn.Module):
    """Three convolutions and a projected shortcut, then max-pooling by two and dropout."""

    def __init__(
        self, inputs: int, outputs: int, drop_rate: float, block_size: int, warm_up: int, slope: float = SLOPE
    ) -> None:
        """`slope` is that of the block's last activation below zero; 1 leaves it out."""
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.conv3 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.downsample = shortcut(inputs, outputs, stride=1)
        self.drop_rate, self.block_size, self.warm_up = drop_rate, block_size, warm_up
        self.slope = slope

    def forward(self, x: Tensor) -> Tensor:
        out = F.leaky_relu(self.bn1(self.conv1(x)), SLOPE)
        out = F.leaky_relu(self.bn2(self.conv2(out)), SLOPE)
        out = self.bn3(self.conv3(out)) + self.downsample(x)
        return self._drop(F.max_pool2d(F.leaky_relu(out, self.slope), 2))

    def _drop(self, features: Tensor) -> Tensor:
        if not self.training or self.drop_rate == 0:
            return features
        if self.block_size == 1:
            return F.dropout(features, self.drop_rate)
        # Batch norm counts the training batches, and its count is saved with the weights: resuming stays exact.
        batches = self.bn1.num_batches_tracked
        assert isinstance(batches, Tensor)
        rate = self.drop_rate * (batches / self.warm_up).clamp(max=1)
        return drop_block(features, rate, self.block_size)


class ResNet12(PooledBackbone):
    """Images N×C×H×W (H, W ≥ 16) → N×640."""

    def __init__(
        self,
        in_chans: int = 3,
        num_classes: int = 0,
        *,
        widths: tuple[int, int, int, int] = (64, 160, 320, 640),
        drop_rate: float = 0.1,
        drop_block_size: int = 5,
        drop_warm_up: int = 40_000,
        final_activation: bool = True,
    ) -> None:
        """`drop_warm_up` is MetaOptNet's schedule: batches until DropBlock reaches `drop_rate`.

        Without `final_activation` the last block has no leaky ReLU, for DFSL's cosines.
        """
        super().__init__(widths[-1], num_classes)
        inputs = (in_chans, *widths[:-1])
        sizes = (1, 1, drop_block_size, drop_block_size)
        slopes = (SLOPE, SLOPE, SLOPE, SLOPE if final_activation else 1.0)
        blocks = [
            Block(i, o, drop_rate, size, drop_warm_up, slope)
            for i, o, size, slope in zip(inputs, widths, sizes, slopes, strict=True)
        ]
        # One block per layer; the Sequential keeps the names of the released checkpoints (layer1.0.conv1 …).
        self.layer1, self.layer2, self.layer3, self.layer4 = (nn.Sequential(block) for block in blocks)
        initialise(self, "leaky_relu")

    def forward_features(self, images_NCHW: Tensor) -> Tensor:
        """See `PooledBackbone.forward_features`."""
        return self.layer4(self.layer3(self.layer2(self.layer1(images_NCHW))))


@register_model
def castle_resnet12(pretrained: bool = False, **arguments: Any) -> nn.Module:
    """The 640-dimensional ResNet-12 of the two ImageNet benchmarks."""
    return build_model_with_cfg(ResNet12, "castle_resnet12", pretrained, **arguments)
