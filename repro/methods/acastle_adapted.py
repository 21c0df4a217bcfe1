"""aCASTLE† (paper, Appendix B): aCASTLE with the light-weight adaptation of `shared/adapted.py` for every task."""

from repro.cards import MethodCard
from repro.methods.acastle import ACastle
from repro.methods.shared.adapted import Adapted


class ACastleAdapted(Adapted):
    """Adapts what a trained aCASTLE synthesises."""

    card = MethodCard(
        "aCASTLE†",
        citation="Ye, Hu & Zhan: Learning Adaptive Classifiers Synthesis for Generalized Few-Shot Learning, IJCV 2021",
        url="https://arxiv.org/abs/1906.02944",
    )
    base_method = "acastle"
    base_class = ACastle
