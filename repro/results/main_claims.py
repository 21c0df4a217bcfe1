"""What the paper says about accuracy and HM in sections 5 and 6, claim by claim. Lines are those of its source."""

from collections.abc import Callable, Sequence
from functools import partial

from repro.results.claims import Claim, Place
from repro.results.comparisons import (
    SHOTS,
    VARIANTS,
    above,
    besides,
    difference,
    fsl,
    gfsl,
    leads,
    within,
)
from repro.results.contrasts import Comparison
from repro.results.store import Cell, Way

# Bounds for vague words, in points.
NEARLY_ZERO = 1.0  # "nearly zero": T4 prints at most 0.01
ALMOST_BEST = 1.0  # "almost the best"

# The rows of each table beside CASTLE and aCASTLE.
HM_ROWS = ("l2ml", "dfsl", "mc_knn", "mc_protonet", "protonet")
T2_ROWS = ("ifsl", *HM_ROWS)
T4_ROWS = ("dfsl", "mc_knn", "mc_protonet", "protonet")
ALL_WAY_ROWS = {"mini": ("T3", HM_ROWS), "tiered": ("T4", T4_ROWS)}
UNBALANCED = ("mc_knn", "mc_protonet")
BALANCED = ("l2ml", "dfsl", "protonet")
FSL_ROWS = ("ifsl", "dfsl", "protonet")  # those of T5 and T6 that are measured here


def best(
    key: str,
    statement: str,
    place: Place,
    refuted_by: str,
    lead: Callable[[Sequence[str]], tuple[Comparison, ...]],
    named: Sequence[str],
    rows: Sequence[str],
) -> Claim:
    """A lead over every row that the sentence names, and further over rows that the paper lacks."""
    return Claim(key, statement, place, refuted_by, (lead(named),), lead(besides(rows, named)))


def accuracy(rows: Sequence[str]) -> list[Claim]:
    """Section 6.3: mean accuracy and Δ with 5 unseen classes."""
    claims = []
    for shot in SHOTS:
        claims += [
            best(
                f"acc-{shot}shot",
                f"aCASTLE has the best mean accuracy, mini, {shot}-shot",
                Place("6.3", 586, ("T2",)),
                "another method of T2 with a higher mean accuracy",
                partial(leads, dataset="mini", leaders=("acastle",), shot=shot, way=5, measure="acc"),
                T2_ROWS,
                rows,
            ),
            best(
                f"delta-{shot}shot",
                f"CASTLE and aCASTLE lose least through the joint label set (lowest Δ), mini, {shot}-shot",
                Place("6.3", 587, ("T2",)),
                "another method of T2 with a lower Δ than either",
                partial(leads, dataset="mini", leaders=VARIANTS, shot=shot, way=5, measure="delta"),
                T2_ROWS,
                rows,
            ),
        ]
    return claims


def harmonic_mean(rows: Sequence[str]) -> list[Claim]:
    """Section 6.3: HM with 5 unseen classes on mini, HM and U→U with all of them on both datasets."""
    claims = [
        best(
            f"hm-mini-{shot}shot-5",
            f"CASTLE and aCASTLE have the best HM, mini, {shot}-shot, 5 unseen classes",
            Place("6.3", 600, ("T2",)),
            "another method of T2 with a higher HM than either",
            partial(leads, dataset="mini", leaders=VARIANTS, shot=shot, way=5, measure="hm"),
            HM_ROWS,
            rows,
        )
        for shot in SHOTS
    ]
    for dataset, (table, named) in ALL_WAY_ROWS.items():
        for shot in SHOTS:
            for measure, word in (("hm", "HM"), ("u_u", "U→U")):
                claims.append(
                    best(
                        f"{measure.replace('_', '')}-{dataset}-{shot}shot-all",
                        f"CASTLE and aCASTLE have the best {word}, {dataset}, {shot}-shot, all unseen classes",
                        Place("6.3", 663, (table,)),
                        f"another method of {table} with a higher {word} than either",
                        partial(leads, dataset=dataset, leaders=VARIANTS, shot=shot, way="all", measure=measure),
                        named,
                        rows,
                    )
                )
    return claims


def unbalanced() -> list[Claim]:
    """Caption of F8 and the tables: MC's combinations ignore unseen classes."""
    shown: tuple[tuple[str, Way], ...] = (("mini", 5), ("mini", "all"), ("tiered", "all"))
    comparisons = tuple(
        within(gfsl(Cell(dataset, method, shot), way, "hm"), -NEARLY_ZERO, NEARLY_ZERO)
        for dataset, way in shown
        for method in UNBALANCED
        for shot in SHOTS
    )
    statement = f"HM of MC + kNN and MC + ProtoNet is nearly zero (below {NEARLY_ZERO:g} point) in T2, T3 and T4"
    place = Place("6.3", 716, ("T2", "T3", "T4"))
    return [Claim("unbalanced", statement, place, f"an HM of {NEARLY_ZERO:g} point or more", (comparisons,))]


def few_shot(rows: Sequence[str]) -> list[Claim]:
    """Section 6.4: few-shot classification among 5 unseen classes, T5 and T6."""

    def behind(dataset: str, methods: Sequence[str]) -> tuple[Comparison, ...]:
        return tuple(
            difference(fsl(Cell(dataset, variant, shot), 5), fsl(Cell(dataset, method, shot), 5), -ALMOST_BEST)
            for shot in SHOTS
            for variant in VARIANTS
            for method in methods
        )

    return [
        Claim(
            f"fsl-{dataset}",
            f"CASTLE and aCASTLE are almost the best in FSL (at most {ALMOST_BEST:g} point behind), {dataset}",
            Place("6.4", 786, (table,)),
            f"a method of {table} more than {ALMOST_BEST:g} point ahead",
            (behind(dataset, FSL_ROWS),),
            behind(dataset, besides(rows, FSL_ROWS)),
        )
        for dataset, table in (("mini", "T5"), ("tiered", "T6"))
    ]


def domains(rows: Sequence[str]) -> list[Claim]:
    """Section 5: one domain's unseen classes beside seen classes of several domains, 1-shot, 5 unseen classes."""
    order = ("acastle", "castle", "castle_minus", "dfsl")
    claims = []
    for dataset, table, section, line in (("heterogeneous", "T1a", "5.3", 523), ("office", "T1b", "5.4", 531)):
        hm = [gfsl(Cell(dataset, method, 1), 5, "hm") for method in order]
        claims += [
            Claim(
                f"domains-{dataset}",
                f"HM on {dataset}: aCASTLE above CASTLE above CASTLE⁻ above DFSL",
                Place(section, line, (table,)),
                "two neighbours of this order the other way round",
                (tuple(above(first, second) for first, second in zip(hm, hm[1:], strict=False)),),
                leads(besides(rows, order), dataset=dataset, leaders=("acastle",), shot=1, way=5, measure="hm"),
            ),
            best(
                f"domains-{dataset}-seen",
                f"aCASTLE has the best accuracy on seen queries (S→S∪U), {dataset}",
                Place(section, line, (table,)),
                f"another method of {table} with a higher S→S∪U",
                partial(leads, dataset=dataset, leaders=("acastle",), shot=1, way=5, measure="s_su"),
                order[1:],
                rows,
            ),
        ]
    return claims
