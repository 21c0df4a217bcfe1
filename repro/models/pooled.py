"""What the backbones share: average-pooled features, and a linear classifier where timm is asked for one."""

from typing import Any, Literal

from torch import Tensor, nn


class PooledBackbone(nn.Module):
    """A feature map averaged over space. Subclasses give `forward_features` (images → N×D×h×w)."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.num_features = num_features
        self.reset_classifier(num_classes)

    def reset_classifier(self, num_classes: int) -> None:
        """Replace the classifier; 0 leaves the pooled features as output."""
        self.num_classes = num_classes
        self.head = nn.Linear(self.num_features, num_classes) if num_classes else nn.Identity()

    def forward_features(self, images_NCHW: Tensor) -> Tensor:
        """The feature map before pooling (N×D×h×w)."""
        raise NotImplementedError

    def forward(self, images_NCHW: Tensor) -> Tensor:
        """Features (N×D), or logits where there is a classifier."""
        return self.head(self.forward_features(images_NCHW).mean(dim=(2, 3)))


def initialise(network: nn.Module, nonlinearity: Literal["relu", "leaky_relu"]) -> None:
    """He initialisation of the convolutions by their outputs, as ResNets are commonly started."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity=nonlinearity)


def shortcut(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    """A 1×1 projection that gives the residual branch the block's width and stride."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs))


def default_cfg(side: int, channels: int = 3) -> dict[str, Any]:
    """What timm should know of a backbone: no weights to fetch, no classifier unless asked, the usual input."""
    return {"url": "", "num_classes": 0, "input_size": (channels, side, side)}
