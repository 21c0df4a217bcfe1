"""What pre-training trains: a backbone with its many-shot classifier, in one of three forms.

Dimensions: N images, D features, S seen classes.
"""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from repro.errors import BadInput
from repro.options import Positive, check_options


class LinearClassifier(nn.Module):
    """Θ·φ, without bias: the joint classifiers of the paper have none."""

    def __init__(self, dim: int, seen_classes: int) -> None:
        super().__init__()
        self.weight_SD = nn.Parameter(torch.empty(seen_classes, dim).uniform_(-1, 1) * dim**-0.5)

    def logit_weight_SD(self) -> Tensor:
        """The rows whose products with an embedding (of unit length, where the form normalises it) are the logits."""
        return self.weight_SD

    def forward(self, embeddings_ND: Tensor) -> Tensor:
        """Logits, N×S."""
        return embeddings_ND @ self.logit_weight_SD().T


class NormalisedClassifier(LinearClassifier):
    """Rows of Θ at unit length, logits divided by a temperature: the form Θ takes in a joint classifier."""

    def __init__(self, dim: int, seen_classes: int, temperature: Positive = 0.5) -> None:
        super().__init__(dim, seen_classes)
        self.temperature = temperature

    def logit_weight_SD(self) -> Tensor:
        """See `LinearClassifier`."""
        return F.normalize(self.weight_SD, dim=-1) / self.temperature


class CosineClassifier(LinearClassifier):
    """Cosine of embedding and row of Θ, times a learnt scale: DFSL's first stage."""

    def __init__(self, dim: int, seen_classes: int, scale: Positive = 10.0) -> None:
        super().__init__(dim, seen_classes)
        self.scale = nn.Parameter(torch.tensor(scale))

    def logit_weight_SD(self) -> Tensor:
        """See `LinearClassifier`."""
        return self.scale * F.normalize(self.weight_SD, dim=-1)

    def forward(self, embeddings_ND: Tensor) -> Tensor:
        """Logits, N×S."""
        return super().forward(F.normalize(embeddings_ND, dim=-1))


CLASSIFIERS: dict[str, type[LinearClassifier]] = {
    "linear": LinearClassifier,
    "normalised": NormalisedClassifier,
    "cosine": CosineClassifier,
}


def check_classifier(name: str, options: Mapping[str, Any]) -> None:
    """Raise BadInput for a classifier there is not, and for options that it does not have."""
    if name not in CLASSIFIERS:
        raise BadInput(f"classifier {name!r} is unknown; expected one of {', '.join(CLASSIFIERS)}")
    check_options(f"classifier {name}", options, CLASSIFIERS[name], given=("dim", "seen_classes"))


class Pretrained(nn.Module):
    """A backbone with its many-shot classifier; `classifier.logit_weight_SD()` is what methods start from."""

    def __init__(
        self, backbone: nn.Module, dim: int, seen_classes: int, classifier: str = "linear", **options: float
    ) -> None:
        super().__init__()
        check_classifier(classifier, options)
        self.backbone = backbone
        self.classifier = CLASSIFIERS[classifier](dim, seen_classes, **options)

    def forward(self, images_NCHW: Tensor) -> Tensor:
        """Logits over the seen classes, N×S."""
        return self.classifier(self.backbone(images_NCHW))
