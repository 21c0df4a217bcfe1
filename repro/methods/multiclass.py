"""MC + kNN (paper, Appendix A (1)): the pre-trained classifier for seen classes, nearest class mean for unseen ones.

Nothing is trained after pre-training. A seen class scores its softmax confidence among the seen classes, an unseen
class the normalised negative distance of Snell et al. (2017), log softmax(−d²) among the task's classes.
"""

from torch import Tensor, nn

from repro.methods.base import FixedSeen
from repro.methods.distances import frozen, prototypes, seen_weight, squared_distances


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


def many_shot_confidence(seen_weight_SD: Tensor, queries_ND: Tensor) -> Tensor:
    """Softmax over the seen classes' linear logits (N×S), between 0 and 1."""
    return (queries_ND @ seen_weight_SD.T).softmax(dim=-1)


def nearest_mean_confidence(support_TWKD: Tensor, queries_TQD: Tensor, temperature: float) -> Tensor:
    """Negative squared distances to the class means, normalised over the task's classes (T×Q×W), at most 0.

    The paper says "normalized negative distance values" and reports a joint harmonic mean of 0.00 ± 0.00, so its
    unseen scores never reach the seen ones. Probabilities would: five classes share one unit of mass as 64 do. The
    logarithm, which ProtoNet's loss takes, keeps the normalisation, the paper's result, and a useful order
    once a bias calibrates the two sides.
    """
    return (-squared_distances(queries_TQD, prototypes(support_TWKD)) / temperature).log_softmax(dim=-1)
