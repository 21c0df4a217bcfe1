"""The protocol in one table: for each recorded measure its label set, denominators, averaging and calibration, and
where the released code or other papers mean something else by the same name.

`repro/evaluation` computes what is said here; S and U are the seen and a task's unseen classes, N the ways of a task.
"""

from dataclasses import dataclass

JOINT, SEEN, UNSEEN = "S ∪ U", "S", "U"
PER_TASK = "over queries, then over tasks"
NOT_CALIBRATED = "–"
BIAS = (
    "one seen bias: the largest mean HM of validation tasks (val classes, seen_val images), every margin tried; "
    "ways capped at the number of val classes"
)


@dataclass(frozen=True)
class Protocol:
    """How one measure, or several that differ by their query set alone, is taken; measures as records name them."""

    measures: tuple[str, ...]
    label: str
    labels: str
    denominator: str
    averaging: str = PER_TASK
    calibrated_on: str = NOT_CALIBRATED
    released: str = "the same"
    others: str = "–"


GRID = "tries 30 biases within the mean largest margin; on TieredImageNet its validation seen images are the test's"
PROTOCOLS = (
    Protocol(
        ("acc",),
        "Mean accuracy",
        JOINT,
        "all queries, as many seen as unseen",
        others="DFSL's “Both” is this; incremental learning counts the test images of all classes, most of them seen",
    ),
    Protocol(("s_s",), "S→S", SEEN, "seen queries, drawn uniformly from seen_test images"),
    Protocol(
        ("u_u",),
        "U→U",
        UNSEEN,
        "unseen queries, equally many of each way",
        others="the usual few-shot accuracy; FSL tables take it from few-shot use, which CASTLE synthesises without Θ",
    ),
    Protocol(
        ("sel_u_u",),
        "U→U, selected",
        UNSEEN,
        "the same, with the weights whose U→U was best on validation tasks, where HM's are others",
        others="what few-shot papers report: a model that was selected for few-shot use",
    ),
    Protocol(("s_su",), "S→S∪U", JOINT, "seen queries"),
    Protocol(("u_su",), "U→S∪U", JOINT, "unseen queries"),
    Protocol(
        ("hm",),
        "HM",
        JOINT,
        "that of S→S∪U and of U→S∪U",
        "harmonic mean within a task (0 where both are 0), then over tasks",
        others="zero-shot learning takes one harmonic mean of two averages over classes",
    ),
    Protocol(
        ("delta",),
        "Δ",
        "own set minus S ∪ U",
        "seen queries, unseen queries",
        "mean of both drops within a task, then over tasks",
        released="has a second form, mean(S→S, U→U) minus joint accuracy; equal while both query sets are",
        others="attention attractor networks define it so",
    ),
    Protocol(
        ("ausuc",),
        "AUSUC",
        "S ∪ U at every seen bias",
        "classes that occur in the task, each with weight 1",
        "area by trapezoids over all breakpoints within a task, then over tasks",
        others="zero-shot learning has every class in its one test set, so that all count",
    ),
    Protocol(
        ("ausuc_released",),
        "AUSUC as released",
        "S ∪ U at every seen bias",
        "all |S| classes, absent ones as 0",
        "as AUSUC; at 5 ways of MiniImageNet it cannot exceed about 69",
        released="this is its form",
    ),
    Protocol(
        ("cal_acc", "cal_s_su", "cal_u_su", "cal_hm"),
        "the same, calibrated",
        JOINT,
        "as without calibration",
        "as without calibration",
        BIAS,
        released=GRID,
    ),
    Protocol(
        ("map_s", "map_u", "map_hm"),
        "MAP HM",
        "seen queries ranked in S, unseen ones in U",
        "all |S| + N classes, those without queries as 0",
        "average precision of each class; harmonic mean of both within a task, then over tasks",
        "a constant bias changes no ranking, so calibration changes nothing",
        released="this is its form; unseen MAP cannot exceed N / (|S| + N)",
    ),
    Protocol(
        ("conf_seen", "conf_unseen", "conf_ratio"),
        "confidence",
        "softmax over S ∪ U, largest probability in the own set",
        "seen queries; unseen queries; their ratio",
        released="not in it; the paper's text gives the ratio of one method",
    ),
    Protocol(
        ("syn_s", "proto_s", "many_s"),
        "|S|-way accuracy",
        SEEN,
        "queries of tasks over the seen classes themselves, from seen_test images",
        released="not in it; the paper's Figure 11",
    ),
)
