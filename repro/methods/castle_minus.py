"""CASTLE⁻ (§5 of the paper): CASTLE's objective without the neural dictionary.

Prototypes themselves, made unit length, join the many-shot classifiers; it is what CASTLE becomes with no bases.
"""

from torch import nn

from repro.methods.castle import Castle


class CastleMinus(Castle):
    """Learns the embedding and the many-shot classifiers only. Options as in `Castle`."""

    def __init__(
        self,
        backbone: nn.Module,
        dim: int,
        seen_classes: int,
        *,
        temperature: float = 1.0,
        classes: int = 24,
        classifiers: int = 64,
        ways: int = 5,
        queries: int = 128,
        train_seen_classifier: bool = True,
    ) -> None:
        super().__init__(
            backbone,
            dim,
            seen_classes,
            ratio=0,
            temperature=temperature,
            classes=classes,
            classifiers=classifiers,
            ways=ways,
            queries=queries,
            train_seen_classifier=train_seen_classifier,
        )
