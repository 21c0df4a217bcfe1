"""CASTLE† (paper, Appendix B): CASTLE with the light-weight adaptation of `shared/adapted.py` for every task."""

from repro.cards import MethodCard
from repro.methods.castle import Castle
from repro.methods.shared.adapted import Adapted


class CastleAdapted(Adapted):
    """Adapts what a trained CASTLE synthesises."""

    card = MethodCard(
        "CASTLE†",
        citation="Ye, Hu & Zhan: Learning Adaptive Classifiers Synthesis for Generalized Few-Shot Learning, IJCV 2021",
        url="https://arxiv.org/abs/1906.02944",
    )
    base_method = "castle"
    base_class = Castle
