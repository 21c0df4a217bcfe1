"""What the paper says it shows: every claim, in the order of its sections, and numbers that it only describes.

A comparison "a above b" is about means over tasks and seeds, paired by task. Rivals are those that the sentence names;
rows of ours that the paper lacks, and a user's, are what a second verdict adds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from repro.results import appendix_claims as appendix
from repro.results import calibration_claims as calibrated
from repro.results import main_claims as main
from repro.results.claims import Claim, Place
from repro.results.comparisons import CLASSIFIERS, OUR_ROWS, RATIOS, SWEEP, VARIANTS, gfsl
from repro.results.store import Cell, Reading

__all__ = ["CLAIMS", "CLASSIFIERS", "DESCRIBED", "RATIOS", "SWEEP", "Described", "paper_claims"]


@dataclass(frozen=True)
class Described:
    """A number that the paper mentions and that nothing follows from: shown beside ours, without a verdict."""

    key: str
    statement: str
    place: Place
    reading: Reading


def paper_claims(rows: Sequence[str] = ()) -> tuple[Claim, ...]:
    """Every claim; `rows` are methods that the second verdict looks at too, where the sentence does not name them."""
    all_rows = [row for row in dict.fromkeys((*OUR_ROWS, *rows)) if row not in VARIANTS]
    return (
        *main.domains(all_rows),
        *main.accuracy(all_rows),
        *main.harmonic_mean(all_rows),
        *main.unbalanced(),
        *calibrated.calibration(all_rows),
        *calibrated.robustness(all_rows),
        *main.few_shot(all_rows),
        *appendix.pretraining(),
        *appendix.incremental(),
        *appendix.adaptation(),
        *appendix.dictionary(),
        *appendix.synthesis(),
        *appendix.averaging(),
        *appendix.classifiers(),
        *appendix.upper_bound(),
    )


CLAIMS = paper_claims()
# The temperature behind this ratio is free, so no value of it refutes anything.
DESCRIBED = (
    Described(
        "confidence",
        "ProtoNet + ProtoNet is more confident on seen than on unseen classes by this factor (mini, 1-shot, 5 ways)",
        Place("6.3", 665, ()),
        gfsl(Cell("mini", "protonet", 1), 5, "conf_ratio"),
    ),
)
