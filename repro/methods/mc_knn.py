"""MC + kNN (paper, Appendix A (1)): the pre-trained classifier for seen classes, nearest class mean for unseen ones.

Nothing is trained after pre-training. A seen class scores its softmax confidence among the seen classes, an unseen
class the normalised negative distance of Snell et al. (2017), log softmax(−d²) among the task's classes.
"""

from torch import Tensor, nn

from repro.methods.base import FixedSeen
from repro.methods.shared.confidences import many_shot_confidence, nearest_mean_confidence
from repro.methods.shared.distances import frozen, seen_weight


class MulticlassKNN(FixedSeen):
    """Two classifiers that never met: their scores are put side by side as they are."""

    def __init__(self, backbone: nn.Module, dim: int, seen_classes: int) -> None:
        super().__init__()
        self.backbone = frozen(backbone)
        self.seen_classes = seen_classes
        self.seen_weight_SD = seen_weight(seen_classes, dim, trained=False)

    def fixed_seen_logits(self, queries_ND: Tensor) -> Tensor:
        """The many-shot classifier's confidence."""
        return many_shot_confidence(self.seen_weight_SD, queries_ND)

    def joint_unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        """The nearest-mean classifier's confidence."""
        return nearest_mean_confidence(support_TWKD, queries_TQD, temperature=1.0)
