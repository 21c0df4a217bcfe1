"""iCaRL (paper, Appendix B; Rebuffi et al. 2017): incremental classifier and representation learning, at inference.

The fine-tuning is that of LwF (`shared/incremental.py`) and moves the features; a class is the mean of its unit-length
exemplars as they lie after it (stored images of a seen class, the support of an unseen one), itself brought to unit
length, and the nearest mean predicts.
"""

from torch import Tensor
from torch.nn.functional import normalize

from repro.cards import MethodCard
from repro.methods.shared.distances import prototypes, squared_distances
from repro.methods.shared.incremental import Incremental


class ICaRL(Incremental):
    """Predicts with the nearest mean of exemplars."""

    card = MethodCard(
        "iCaRL",
        citation="Rebuffi et al.: iCaRL: Incremental Classifier and Representation Learning, CVPR 2017",
        url="https://arxiv.org/abs/1611.07725",
    )

    def joint_logits(self, support_TWKD: Tensor, queries_TQD: Tensor) -> tuple[Tensor, Tensor]:
        """Negative squared distances to the means of exemplars in the adapted feature space."""
        tuned = self.tune(support_TWKD)
        stored_SMD = self.store.exemplars()
        stored_TND = tuned.features(stored_SMD.flatten(0, 1).unsqueeze(0))
        seen_TSD = _exemplar_means(stored_TND.unflatten(1, stored_SMD.shape[:2]))
        shots_TWKD = tuned.features(support_TWKD.flatten(1, 2)).view_as(support_TWKD)
        queries_TQD = normalize(tuned.features(queries_TQD), dim=-1)
        tail_TWD = _exemplar_means(shots_TWKD)
        return -squared_distances(queries_TQD, seen_TSD), -squared_distances(queries_TQD, tail_TWD)


def _exemplar_means(exemplars_TSMD: Tensor) -> Tensor:
    return normalize(prototypes(normalize(exemplars_TSMD, dim=-1)), dim=-1)
