"""What section 6.3 says about calibration, AUSUC and more unseen classes: mini, 1-shot, claim by claim."""

from collections.abc import Sequence
from functools import partial

from repro.results.claims import Claim, Place
from repro.results.comparisons import SWEEP, TIE, VARIANTS, WAYS, above, besides, gfsl, leads
from repro.results.contrasts import Comparison, Term
from repro.results.main_claims import BALANCED, HM_ROWS, best
from repro.results.store import Cell, Way


def calibration(rows: Sequence[str]) -> list[Claim]:
    """Section 6.3: what calibration does, mini, 1-shot."""

    def lift(method: str, way: Way) -> Comparison:
        cell = Cell("mini", method, 1)
        return above(gfsl(cell, way, "cal_hm"), gfsl(cell, way, "hm"))

    others = besides(rows, HM_ROWS)
    protonet, dfsl = (gfsl(Cell("mini", method, 1), 5, "cal_hm") for method in ("protonet", "dfsl"))
    return [
        Claim(
            "calibration-lifts",
            "Calibration lifts the HM of every baseline (mini, 1-shot, 5 unseen classes)",
            Place("6.3", 668, ("F6",)),
            "a baseline whose HM falls",
            (tuple(lift(method, 5) for method in HM_ROWS),),
            tuple(lift(method, 5) for method in others),
        ),
        Claim(
            "calibration-lifts-every-way",
            "Calibration lifts the HM of every baseline for every number of unseen classes (mini, 1-shot)",
            Place("6.3", 716, ("F8", "F9")),
            "a baseline and a number of unseen classes where HM falls",
            (tuple(lift(method, way) for way in SWEEP for method in HM_ROWS),),
            tuple(lift(method, way) for way in SWEEP for method in others),
        ),
        Claim(
            "calibration-least",
            "Calibration changes the HM of CASTLE and aCASTLE least (mini, 1-shot, 5 unseen classes)",
            Place("6.3", 669, ("F6",)),
            "a baseline whose HM changes less than that of either",
            (_changes_less(HM_ROWS),),
            _changes_less(others),
        ),
        Claim(
            "calibrated-protonet",
            "Calibrated, ProtoNet + ProtoNet has a better HM than DFSL (mini, 1-shot, 5 unseen classes)",
            Place("6.3", 668, ("F6",)),
            "DFSL's calibrated HM above ProtoNet's",
            ((above(protonet, dfsl),),),
        ),
    ]


def _changes_less(methods: Sequence[str]) -> tuple[Comparison, ...]:
    """Calibration's gain of each method exceeds the change of either variant, in whichever direction that goes."""
    compared = []
    for variant in VARIANTS:
        for method in methods:
            terms = [Term(1.0, gfsl(Cell("mini", method, 1), 5, "cal_hm"))]
            terms += [Term(-1.0, gfsl(Cell("mini", method, 1), 5, "hm"))]
            for sign, word in ((-1.0, "−"), (1.0, "+")):
                change = (
                    Term(sign, gfsl(Cell("mini", variant, 1), 5, "cal_hm")),
                    Term(-sign, gfsl(Cell("mini", variant, 1), 5, "hm")),
                )
                label = f"calibration's gain of mini-{method}-1shot {word} that of mini-{variant}-1shot"
                compared.append(Comparison(label, (*terms, *change), tie=TIE))
    return tuple(compared)


def robustness(rows: Sequence[str]) -> list[Claim]:
    """Section 6.3: AUSUC, and HM against the number of unseen classes; mini, 1-shot."""
    area = [
        best(
            f"ausuc-{way}",
            f"CASTLE and aCASTLE have the largest AUSUC (mini, 1-shot, {way} unseen classes)",
            Place("6.3", 712, ("F7",)),
            "another method with a larger AUSUC than either",
            partial(leads, dataset="mini", leaders=VARIANTS, shot=1, way=way, measure="ausuc"),
            HM_ROWS,
            rows,
        )
        for way in WAYS
    ]

    def every_way(methods: Sequence[str], measure: str) -> tuple[Comparison, ...]:
        lead = partial(leads, dataset="mini", leaders=("acastle",), shot=1)
        return tuple(each for way in SWEEP for each in lead(methods, way=way, measure=measure))

    return [
        *area,
        Claim(
            "every-way",
            "aCASTLE has a better HM than every baseline for every number of unseen classes (mini, 1-shot)",
            Place("6.3", 716, ("F8",)),
            "a number of unseen classes at which a baseline has a higher HM",
            (every_way(BALANCED, "hm"),),
            every_way(besides(rows, BALANCED), "hm"),
        ),
        Claim(
            "every-way-calibrated",
            "Calibrated, aCASTLE still has the best HM for every number of unseen classes (mini, 1-shot)",
            Place("6.3", 716, ("F9",)),
            "a number of unseen classes at which a calibrated baseline has a higher HM",
            (every_way(HM_ROWS, "cal_hm"),),
            every_way(besides(rows, HM_ROWS), "cal_hm"),
        ),
    ]
