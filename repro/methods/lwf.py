"""LwF (paper, Appendix B; Li & Hoiem 2018): learning without forgetting, at inference.

The pre-trained classifier is fine-tuned for every task with stored seen images and distillation of its old outputs
(`shared/incremental.py`); the fine-tuned classifier predicts.
"""

from repro.cards import MethodCard
from repro.methods.shared.incremental import Incremental


class LwF(Incremental):
    """Predicts with the fine-tuned joint classifier."""

    card = MethodCard(
        "LwF",
        citation="Li and Hoiem: Learning without Forgetting, TPAMI 2018",
        url="https://arxiv.org/abs/1606.09282",
    )
