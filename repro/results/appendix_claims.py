"""What the paper says in appendix B about CASTLE on mini, claim by claim. Lines are those of its source."""

from repro.results.claims import Claim, Place
from repro.results.comparisons import (
    CLASSIFIERS,
    RATIOS,
    SHOTS,
    TIE,
    VARIANTS,
    WAYS,
    above,
    difference,
    fsl,
    gfsl,
    seen,
)
from repro.results.contrasts import Comparison, Term
from repro.results.store import Cell, Reading, Way

# Bounds for vague words, in points: each a round number above the paper's own value.
A_BIT = 5.0  # "only a bit lower": T7 prints 2.60; "much lower" is more than this
SMALL_GAIN = 2.0  # "could be improved": T9 prints at most 0.60
SAME = 1.0  # "does not improve obviously": T10 prints at most 0.04
OWN_BASELINES = ("mc_knn", "mc_protonet", "protonet")
MAIN, MAIN_5SHOT = Cell("mini", "castle", 1), Cell("mini", "castle", 5)
BEST_RATIOS = (2, 3)


def _hm(method: str, way: Way, shot: int) -> Reading:
    return gfsl(Cell("mini", method, shot), way, "hm")


def pretraining() -> list[Claim]:
    """B.1."""
    scratch = Cell("mini", "castle", 1, "scratch")
    comparisons = (
        difference(fsl(MAIN, 5), fsl(scratch, 5), -A_BIT, A_BIT),
        difference(gfsl(MAIN, 5, "hm"), gfsl(scratch, 5, "hm"), A_BIT),
    )
    return [
        Claim(
            "pretraining",
            f"Without pre-training FSL is only a bit lower (within {A_BIT:g} points), HM much lower (by more)",
            Place("B.1", 862, ("T7",)),
            f"an FSL effect beyond {A_BIT:g} points, or an HM effect below",
            (comparisons,),
        )
    ]


def incremental() -> list[Claim]:
    """B.2: LwF and iCaRL."""
    learners = ("lwf", "icarl")
    superior = tuple(
        above(_hm(variant, way, shot), _hm(learner, way, shot))
        for variant in VARIANTS
        for learner in learners
        for way in WAYS
        for shot in SHOTS
    )
    can = tuple(
        tuple(above(_hm(learner, way, shot), _hm(other, way, shot)) for learner in learners for other in OWN_BASELINES)
        for way in WAYS
        for shot in SHOTS
    )
    return [
        Claim(
            "incremental",
            "CASTLE and aCASTLE have a better HM than LwF and iCaRL in every setup",
            Place("B.2", 889, ("T8",)),
            "a setup in which LwF or iCaRL has the higher HM",
            (superior,),
        ),
        Claim(
            "incremental-baselines",
            "LwF and iCaRL can have a better HM than MC + kNN, MC + ProtoNet and ProtoNet + ProtoNet (in some setup)",
            Place("B.2", 889, ("T8", "T2", "T3")),
            "a baseline above LwF or iCaRL in every setup",
            can,
        ),
    ]


def adaptation() -> list[Claim]:
    """B.3: fine-tuning scale and bias."""
    return [
        Claim(
            f"adaptation-{variant}",
            f"Light-weight adaptation of {title} gains a little (under {SMALL_GAIN:g} points of HM) in every setup",
            Place("B.3", 915, ("T9",)),
            f"a setup with a loss, or a gain of {SMALL_GAIN:g} points",
            (
                tuple(
                    difference(_hm(f"{variant}_adapted", way, shot), _hm(variant, way, shot), 0.0, SMALL_GAIN, TIE)
                    for way in WAYS
                    for shot in SHOTS
                ),
            ),
        )
        for variant, title in zip(VARIANTS, ("CASTLE", "aCASTLE"), strict=True)
    ]


def dictionary() -> list[Claim]:
    """B.4: U→U against the size of the dictionary."""
    ratio = {ratio: fsl(Cell("mini", "castle", 1, variant), 5) for ratio, variant in RATIOS.items()}
    return [
        Claim(
            "dictionary",
            "A dictionary of 2 or 3 times the seen classes is best for few-shot classification",
            Place("B.4", 969, ("F10",)),
            "another size above both",
            tuple(
                tuple(above(ratio[good], ratio[other]) for other in RATIOS if other not in BEST_RATIOS)
                for good in BEST_RATIOS
            ),
        )
    ]


def synthesis() -> list[Claim]:
    """B.5: classifiers of seen classes, synthesised from few images of each."""
    synthesised, protonet = seen(MAIN, "syn_s"), seen(Cell("mini", "protonet", 1), "proto_s")
    vanilla = seen(Cell("mini", "castle", 1, "vanilla"), "syn_s")
    place = Place("B.5", 972, ("F11",))
    cases = (
        ("over", "synthesised classifiers beat ProtoNet's prototypes", synthesised, protonet),
        ("unified", "the unified objective improves over vanilla synthesis", synthesised, vanilla),
        ("under", "synthesised classifiers stay below many-shot ones", seen(MAIN, "many_s"), synthesised),
    )
    return [
        Claim(f"synthesis-{key}", f"On seen classes, {words}", place, "the reverse", ((above(first, second),),))
        for key, words, first, second in cases
    ]


def averaging() -> list[Claim]:
    """B.6: averaging embeddings or classifiers."""
    postavg = Cell("mini", "castle", 5, "postavg")
    comparisons = (
        difference(fsl(postavg, 5), fsl(MAIN_5SHOT, 5), -SAME, SAME),
        difference(gfsl(postavg, 5, "hm"), gfsl(MAIN_5SHOT, 5, "hm"), -SAME, SAME),
    )
    statement = f"Post-AVG equals Pre-AVG within {SAME:g} point, FSL and HM"
    refuted_by = f"a difference beyond {SAME:g} point"
    return [Claim("post-avg", statement, Place("B.6", 976, ("T10",)), refuted_by, (comparisons,))]


def classifiers() -> list[Claim]:
    """B.7: several classifiers per training step."""
    one, *more = (gfsl(Cell("mini", "castle", 1, variant), 5, "hm") for variant in CLASSIFIERS.values())
    return [
        Claim(
            "classifiers",
            "HM with 64, 128 and 256 classifiers per step is each at least that with one",
            Place("B.7", 979, ("T11",)),
            "one of them below one classifier's HM",
            (tuple(above(many, one) for many in more),),
        )
    ]


def upper_bound() -> list[Claim]:
    """B.8: prototypes from every unseen image but the queries, 5-shot."""
    bound = Cell("mini", "upper_bound", 5)

    def gap(cell: Cell, way: Way, protocol: str) -> tuple[Reading, Reading]:
        if protocol == "fsl":
            return fsl(bound, way), fsl(cell, way)
        return gfsl(bound, way, "cal_hm"), gfsl(cell, way, "hm")

    cases = [(Cell("mini", variant, 5), protocol) for variant in VARIANTS for protocol in ("fsl", "gfsl")]
    growth = []
    for cell, protocol in cases:
        (far_bound, far), (near_bound, near) = gap(cell, "all", protocol), gap(cell, 5, protocol)
        terms = (Term(1.0, far_bound), Term(-1.0, far), Term(-1.0, near_bound), Term(1.0, near))
        growth.append(Comparison(f"gap of {cell.name} ({protocol}) at all ways − at 5 ways", terms, tie=TIE))
    return [
        Claim(
            "upper-bound",
            "The upper bound lies above CASTLE and aCASTLE in every setup",
            Place("B.8", 1004, ("T12",)),
            "a setup in which either lies above it",
            (tuple(above(*gap(cell, way, protocol)) for cell, protocol in cases for way in WAYS),),
        ),
        Claim(
            "upper-bound-gap",
            "The gap to the upper bound grows with the number of unseen classes",
            Place("B.8", 1004, ("T12",)),
            "a smaller gap at all ways than at 5",
            (tuple(growth),),
        ),
    ]
