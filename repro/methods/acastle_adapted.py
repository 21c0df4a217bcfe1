"""aCASTLE† (paper, Appendix B): aCASTLE with the light-weight adaptation of `shared/adapted.py` for every task."""

from repro.methods.acastle import ACastle
from repro.methods.shared.adapted import Adapted


class ACastleAdapted(Adapted):
    """Adapts what a trained aCASTLE synthesises."""

    base_method = "acastle"
    base_class = ACastle
