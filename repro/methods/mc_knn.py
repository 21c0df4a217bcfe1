"""MC + kNN (paper, Appendix A (1)): the pre-trained classifier for seen classes, nearest class mean for unseen ones.

Nothing is trained after pre-training. A seen class scores its linear logit, an unseen class the negative squared
distance to its mean, −d²: the union of both as they are, as the released code has it (the paper speaks of normalised
distances). The best logit is positive and −d² is not, so without calibration hardly a query is called unseen.
"""

from torch import Tensor, nn

from repro.cards import Look, MethodCard
from repro.methods.base import FixedSeen
from repro.methods.shared.distances import frozen, prototypes, seen_weight, squared_distances


class MulticlassKNN(FixedSeen):
    """Two classifiers that never met: their scores are put side by side as they are."""

    card = MethodCard(
        "MC + kNN",
        citation="Ye, Hu & Zhan: Learning Adaptive Classifiers Synthesis for Generalized Few-Shot Learning, IJCV 2021",
        url="https://arxiv.org/abs/1906.02944",
        look=Look("#949494", "v", ":"),
    )

    def __init__(self, backbone: nn.Module, dim: int, seen_classes: int) -> None:
        super().__init__()
        self.backbone = frozen(backbone)
        self.seen_classes = seen_classes
        self.seen_weight_SD = seen_weight(seen_classes, dim, trained=False)

    def fixed_seen_logits(self, queries_ND: Tensor) -> Tensor:
        """The many-shot classifier's logits."""
        return queries_ND @ self.seen_weight_SD.T

    def joint_unseen_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> Tensor:
        """Negative squared distances to the support's class means."""
        return -squared_distances(queries_TQD, prototypes(support_TWKD))
