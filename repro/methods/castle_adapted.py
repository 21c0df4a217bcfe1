"""CASTLE† (paper, Appendix B): CASTLE with the light-weight adaptation of `shared/adapted.py` for every task."""

from repro.methods.castle import Castle
from repro.methods.shared.adapted import Adapted


class CastleAdapted(Adapted):
    """Adapts what a trained CASTLE synthesises."""

    base_method = "castle"
    base_class = Castle
