"""The confidences that the baselines with a linear seen classifier put side by side (paper, Appendix A (1) and (3))."""

from torch import Tensor

from repro.methods.shared.distances import prototypes, squared_distances


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
