"""What the paper says it shows, claim by claim, as comparisons of records.

A comparison "a above b" is about means over tasks, paired by task. Where the paper uses a vague word, the bound that
stands for it is named below.
"""

from math import inf

from repro.results.claims import Claim
from repro.results.contrasts import Comparison, Term
from repro.results.store import Cell, Reading, Way

# Bounds for vague words, in points: each a round number above the paper's own value.
NEARLY_ZERO = 1.0  # T4 prints at most 0.01
SMALL_FSL_EFFECT = 5.0  # T7: 2.60
SMALL_GAIN = 2.0  # T9: at most 0.60
SAME = 1.0  # T10: at most 0.04
ABOUT_TWICE = (1.5, 2.5)  # the text: 2.1 times

VARIANTS = ("castle", "acastle")
# Every baseline that is measured; IFSL too where the paper, which quotes it, has no number of it.
BASELINES = {
    "mini": ("ifsl", "l2ml", "dfsl", "mc_knn", "mc_protonet", "protonet"),
    "tiered": ("ifsl", "dfsl", "mc_knn", "mc_protonet", "protonet"),
}
UNBALANCED = ("mc_knn", "mc_protonet")
WAYS: tuple[Way, ...] = (5, "all")
SWEEP: tuple[Way, ...] = (5, 10, 15, 20)
SHOTS = (1, 5)
# Option → variant of the cell; the main cell has none.
RATIOS = {0: "ratio0", 1: "ratio1", 2: "", 3: "ratio3", 4: "ratio4"}
CLASSIFIERS = {count: f"classifiers{count}" for count in (1, 64, 128, 256)}


def gfsl(cell: Cell, way: Way, measure: str) -> Reading:
    """A measure of the joint tasks."""
    return Reading(cell, "gfsl", way, measure)


def fsl(cell: Cell, way: Way) -> Reading:
    """Accuracy among the unseen classes alone."""
    return Reading(cell, "fsl", way, "u_u")


def above(first: Reading, second: Reading, low: float = 0.0, high: float = inf) -> Comparison:
    """`first` above `second`, by more than `low` and less than `high` points."""
    return Comparison(f"{_name(first)} − {_name(second)}", (Term(1.0, first), Term(-1.0, second)), low, high)


def _name(reading: Reading) -> str:
    way = "" if reading.way == "any" else f" {reading.way}-way"
    return f"{reading.cell.name}{way} {reading.measure}"


def leads(
    dataset: str, leaders: tuple[str, ...], others: tuple[str, ...], *, shot: int, way: Way, measure: str
) -> tuple[Comparison, ...]:
    """Every leader above every other method."""
    return tuple(
        above(gfsl(Cell(dataset, leader, shot), way, measure), gfsl(Cell(dataset, other, shot), way, measure))
        for leader in leaders
        for other in others
    )


def _way_words(way: Way) -> str:
    return "all unseen classes" if way == "all" else f"{way} unseen classes"


def _mean_accuracy() -> list[Claim]:
    others = (*BASELINES["mini"], "castle")
    return [
        Claim(
            f"acc-{shot}shot",
            f"aCASTLE has the best mean accuracy on mini, {shot}-shot",
            "T2",
            (leads("mini", ("acastle",), others, shot=shot, way=5, measure="acc"),),
        )
        for shot in SHOTS
    ]


def _delta() -> list[Claim]:
    return [
        Claim(
            f"delta-{shot}shot",
            f"CASTLE and aCASTLE lose least through the joint label set (lowest Δ) on mini, {shot}-shot",
            "T2",
            (
                tuple(
                    above(gfsl(Cell("mini", other, shot), 5, "delta"), gfsl(Cell("mini", variant, shot), 5, "delta"))
                    for variant in VARIANTS
                    for other in BASELINES["mini"]
                ),
            ),
        )
        for shot in SHOTS
    ]


def _harmonic_mean() -> list[Claim]:
    return [
        Claim(
            f"hm-{dataset}-{shot}shot-{way}",
            f"CASTLE and aCASTLE have the best HM on {dataset}, {shot}-shot, {_way_words(way)}",
            {"mini": {5: "T2", "all": "T3"}, "tiered": {5: "text", "all": "T4"}}[dataset][way],
            (leads(dataset, VARIANTS, BASELINES[dataset], shot=shot, way=way, measure="hm"),),
        )
        for dataset in ("mini", "tiered")
        for shot in SHOTS
        for way in WAYS
    ]


def _unbalanced() -> list[Claim]:
    near_zero = tuple(
        Comparison(_name(reading), (Term(1.0, reading),), -NEARLY_ZERO, NEARLY_ZERO)
        for dataset in ("mini", "tiered")
        for method in UNBALANCED
        for shot in SHOTS
        for way in WAYS
        for reading in (gfsl(Cell(dataset, method, shot), way, "hm"),)
    )
    statement = f"HM of MC + kNN and MC + ProtoNet is nearly zero (below {NEARLY_ZERO:g} point) everywhere"
    return [Claim("unbalanced", statement, "T2, T3, T4", (near_zero,))]


def _calibration() -> list[Claim]:
    cells = {method: Cell("mini", method, 1) for method in (*BASELINES["mini"], *VARIANTS)}
    lifts = tuple(above(gfsl(cells[name], 5, "cal_hm"), gfsl(cells[name], 5, "hm")) for name in BASELINES["mini"])
    least = tuple(
        Comparison(
            f"gain of {cells[baseline].name} {word} gain of {cells[variant].name}",
            (
                Term(1.0, gfsl(cells[baseline], 5, "cal_hm")),
                Term(-1.0, gfsl(cells[baseline], 5, "hm")),
                Term(sign, gfsl(cells[variant], 5, "cal_hm")),
                Term(-sign, gfsl(cells[variant], 5, "hm")),
            ),
        )
        for variant in VARIANTS
        for baseline in BASELINES["mini"]
        # Both together: the baseline's gain exceeds the variant's change in either direction.
        for sign, word in ((-1.0, "−"), (1.0, "+"))
    )
    proto, dfsl = cells["protonet"], cells["dfsl"]
    low, high = ABOUT_TWICE
    ratio = gfsl(proto, 5, "conf_ratio")
    twice = (Comparison(_name(ratio), (Term(1.0, ratio),), low, high),)
    return [
        Claim("calibration-lifts", "Calibration lifts the HM of every baseline (mini, 1-shot, 5 ways)", "F6", (lifts,)),
        Claim(
            "calibration-least", "Calibration changes CASTLE and aCASTLE least (mini, 1-shot, 5 ways)", "F6", (least,)
        ),
        Claim(
            "calibrated-protonet",
            "Calibrated, ProtoNet's HM is at least DFSL's (mini, 1-shot, 5 ways)",
            "F6",
            ((above(gfsl(proto, 5, "cal_hm"), gfsl(dfsl, 5, "cal_hm")),),),
        ),
        Claim(
            "confidence",
            f"ProtoNet is about twice as confident on seen as on unseen classes ({low:g} to {high:g} times)",
            "text",
            (twice,),
        ),
    ]


def _ausuc() -> list[Claim]:
    return [
        Claim(
            f"ausuc-{way}",
            f"CASTLE and aCASTLE have the largest AUSUC (mini, 1-shot, {_way_words(way)})",
            "F7",
            (leads("mini", VARIANTS, BASELINES["mini"], shot=1, way=way, measure="ausuc"),),
        )
        for way in WAYS
    ]


def _every_way() -> list[Claim]:
    def best(measure: str, others: tuple[str, ...]) -> tuple[Comparison, ...]:
        rivals = (*others, "castle")
        sweep = [leads("mini", ("acastle",), rivals, shot=1, way=way, measure=measure) for way in SWEEP]
        return tuple(each for group in sweep for each in group)

    balanced = tuple(name for name in BASELINES["mini"] if name not in UNBALANCED)
    return [
        Claim("every-way", "aCASTLE has the best HM for every number of unseen classes", "F8", (best("hm", balanced),)),
        Claim(
            "every-way-calibrated",
            "Calibrated, aCASTLE still has the best HM for every number of unseen classes",
            "F9",
            (best("cal_hm", BASELINES["mini"]),),
        ),
    ]


def _domains() -> list[Claim]:
    claims = []
    for dataset, table in (("heterogeneous", "T1a"), ("office", "T1b")):
        minus, castle, acastle = (Cell(dataset, method, 1) for method in ("castle_minus", "castle", "acastle"))
        order = (
            above(gfsl(acastle, 5, "hm"), gfsl(castle, 5, "hm")),
            above(gfsl(castle, 5, "hm"), gfsl(minus, 5, "hm")),
        )
        seen_gain = Comparison(
            f"gain of {acastle.name} over {castle.name} in s_su − in u_su",
            (
                Term(1.0, gfsl(acastle, 5, "s_su")),
                Term(-1.0, gfsl(castle, 5, "s_su")),
                Term(-1.0, gfsl(acastle, 5, "u_su")),
                Term(1.0, gfsl(castle, 5, "u_su")),
            ),
        )
        claims += [
            Claim(f"domains-{dataset}", f"HM on {dataset}: aCASTLE above CASTLE above CASTLE⁻", table, (order,)),
            Claim(
                f"domains-{dataset}-seen",
                f"On {dataset} aCASTLE gains on seen queries (S→S∪U), and more than on unseen ones",
                table,
                ((above(gfsl(acastle, 5, "s_su"), gfsl(castle, 5, "s_su")), seen_gain),),
            ),
        ]
    return claims


def _ablations() -> list[Claim]:
    main, main5 = Cell("mini", "castle", 1), Cell("mini", "castle", 5)
    scratch, postavg = Cell("mini", "castle", 1, "scratch"), Cell("mini", "castle", 5, "postavg")
    pretraining = (
        above(fsl(main, 5), fsl(scratch, 5), -SMALL_FSL_EFFECT, SMALL_FSL_EFFECT),
        above(gfsl(main, 5, "hm"), gfsl(scratch, 5, "hm"), SMALL_FSL_EFFECT),
    )
    ratio = {ratio: fsl(Cell("mini", "castle", 1, variant), 5) for ratio, variant in RATIOS.items()}
    ratio_best = tuple(
        tuple(above(ratio[good], ratio[other]) for other in RATIOS if other not in (2, 3)) for good in (2, 3)
    )
    counts = [gfsl(Cell("mini", "castle", 1, variant), 5, "hm") for variant in CLASSIFIERS.values()]
    return [
        Claim(
            "pretraining",
            f"Pre-training matters little for FSL (within {SMALL_FSL_EFFECT:g} points) and more than that for HM",
            "T7",
            (pretraining,),
        ),
        Claim("dictionary", "A dictionary of 2 or 3 times the seen classes is best", "F10", ratio_best),
        Claim(
            "post-avg",
            f"Post-AVG equals Pre-AVG within {SAME:g} point, FSL and HM",
            "T10",
            (
                (
                    above(fsl(postavg, 5), fsl(main5, 5), -SAME, SAME),
                    above(gfsl(postavg, 5, "hm"), gfsl(main5, 5, "hm"), -SAME, SAME),
                ),
            ),
        ),
        Claim(
            "classifiers",
            "HM grows with the number of classifiers per step",
            "T11",
            (tuple(above(more, fewer) for fewer, more in zip(counts, counts[1:], strict=False)),),
        ),
    ]


def _synthesised() -> list[Claim]:
    def seen(method: str, measure: str) -> Reading:
        return Reading(Cell("mini", method, 1), "seen", "any", measure)

    over = tuple(above(seen(name, "syn_s"), seen(name, "proto_s")) for name in VARIANTS)
    under = tuple(above(seen(name, "many_s"), seen(name, "syn_s")) for name in VARIANTS)
    return [
        Claim("synthesis-over", "On seen classes, synthesised classifiers beat prototypes", "F11", (over,)),
        Claim("synthesis-under", "On seen classes, synthesised stay below many-shot classifiers", "F11", (under,)),
    ]


def _inference_training() -> list[Claim]:
    def setups(first: str, second: str, low: float = 0.0, high: float = inf) -> tuple[Comparison, ...]:
        return tuple(
            above(gfsl(Cell("mini", first, shot), way, "hm"), gfsl(Cell("mini", second, shot), way, "hm"), low, high)
            for way in WAYS
            for shot in SHOTS
        )

    incremental = tuple(each for variant in VARIANTS for other in ("lwf", "icarl") for each in setups(variant, other))
    return [
        Claim("incremental", "CASTLE and aCASTLE beat LwF and iCaRL in every setup", "T8", (incremental,)),
        *(
            Claim(
                f"adaptation-{variant}",
                f"Light-weight adaptation of {name} gains a little (under {SMALL_GAIN:g} points) in every setup",
                "T9",
                (setups(f"{variant}_adapted", variant, 0.0, SMALL_GAIN),),
            )
            for variant, name in zip(VARIANTS, ("CASTLE", "aCASTLE"), strict=True)
        ),
    ]


def _upper_bound() -> list[Claim]:
    bound = Cell("mini", "upper_bound", 5)

    def gap(cell: Cell, way: Way, protocol: str) -> tuple[Reading, Reading]:
        if protocol == "fsl":
            return fsl(bound, way), fsl(cell, way)
        return gfsl(bound, way, "cal_hm"), gfsl(cell, way, "hm")

    cases = [(Cell("mini", variant, 5), protocol) for variant in VARIANTS for protocol in ("fsl", "gfsl")]
    gaps = tuple(above(*gap(cell, way, protocol)) for cell, protocol in cases for way in WAYS)
    growth = []
    for cell, protocol in cases:
        (far_bound, far), (near_bound, near) = gap(cell, "all", protocol), gap(cell, 5, protocol)
        terms = (Term(1.0, far_bound), Term(-1.0, far), Term(-1.0, near_bound), Term(1.0, near))
        growth.append(Comparison(f"gap of {cell.name} ({protocol}) at all ways − at 5 ways", terms))
    return [
        Claim("upper-bound", "The upper bound lies above CASTLE and aCASTLE in every setup", "T12", (gaps,)),
        Claim("upper-bound-gap", "The gap to the upper bound grows with the unseen classes", "T12", (tuple(growth),)),
    ]


CLAIMS: tuple[Claim, ...] = (
    *_mean_accuracy(),
    *_delta(),
    *_harmonic_mean(),
    *_unbalanced(),
    *_calibration(),
    *_ausuc(),
    *_every_way(),
    *_domains(),
    *_ablations(),
    *_synthesised(),
    *_inference_training(),
    *_upper_bound(),
)
