"""Per-task values in their smallest exact form: counts of right queries, and what follows from them.

An accuracy is 100 · k / n of n queries, so k says it all; HM, Δ and the mean accuracy follow from accuracies. What
does not come back bit for bit stays as it is: nothing is rounded.

T tasks.
"""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

Columns = Mapping[str, np.ndarray]

# Measures that count right queries, and what each is kept relative to: most of what is lost in the joint label set is
# small, and small numbers take less room.
COUNTS = {
    "s_s": "",
    "u_u": "",
    "s_su": "s_s",
    "u_su": "u_u",
    "cal_s_su": "s_su",
    "cal_u_su": "u_su",
    "syn_s": "",
    "proto_s": "",
    "many_s": "",
}


def _mean(seen_T: np.ndarray, unseen_T: np.ndarray) -> np.ndarray:
    """Seen and unseen queries are equally many."""
    return 0.5 * seen_T + 0.5 * unseen_T


def _harmonic(seen_T: np.ndarray, unseen_T: np.ndarray) -> np.ndarray:
    total_T = seen_T + unseen_T
    tiny = np.finfo(total_T.dtype).tiny
    return np.where(total_T > 0, 2 * seen_T * unseen_T / np.maximum(total_T, tiny), 0.0)


def _lost(s_s_T: np.ndarray, u_u_T: np.ndarray, s_su_T: np.ndarray, u_su_T: np.ndarray) -> np.ndarray:
    return ((s_s_T - s_su_T) + (u_u_T - u_su_T)) / 2


# Measures that follow from accuracies as fractions, with the operations of `repro.evaluation.metrics` in their order.
FOLLOWING: dict[str, tuple[Callable[..., np.ndarray], tuple[str, ...]]] = {
    "acc": (_mean, ("s_su", "u_su")),
    "hm": (_harmonic, ("s_su", "u_su")),
    "delta": (_lost, ("s_s", "u_u", "s_su", "u_su")),
    "cal_acc": (_mean, ("cal_s_su", "cal_u_su")),
    "cal_hm": (_harmonic, ("cal_s_su", "cal_u_su")),
}


def behind(measures: Iterable[str]) -> set[str]:
    """The counts that these measures follow from, or are."""
    return {count for measure in measures for count in FOLLOWING.get(measure, (None, (measure,)))[1]}


def counted(values: Columns, queries: int) -> tuple[dict[str, np.ndarray], set[str]]:
    """Counts by measure, int32, and the measures that they stand for; `queries` were asked of every task."""
    found = {}
    for measure in COUNTS:
        if measure in values and not np.isnan(values[measure]).any():
            counts_T = np.rint(values[measure].astype(np.float64) * queries / 100)
            if _equal(_percent(counts_T / queries), values[measure]):
                found[measure] = counts_T.astype(np.int32)
    return found, {measure for measure, value in restored(found, queries).items() if _equal(value, values.get(measure))}


def restored(counts: Columns, queries: int) -> dict[str, np.ndarray]:
    """Every measure that these counts stand for, float32 in percent as records have them."""
    shares = {measure: counts_T / queries for measure, counts_T in counts.items()}
    following = {
        measure: follow(*(shares[part] for part in parts))
        for measure, (follow, parts) in FOLLOWING.items()
        if all(part in shares for part in parts)
    }
    return {measure: _percent(share_T) for measure, share_T in {**shares, **following}.items()}


def relative(counts: Columns) -> dict[str, np.ndarray]:
    """Counts as they are stored: less what they are kept relative to, where that is there."""
    return {
        measure: counts_T - counts[to] if (to := COUNTS[measure]) in counts else counts_T
        for measure, counts_T in counts.items()
    }


def absolute(stored: Columns) -> dict[str, np.ndarray]:
    """The inverse of `relative`."""
    counts: dict[str, np.ndarray] = {}
    for measure, to in COUNTS.items():  # what others are relative to comes before them
        if measure in stored:
            counts[measure] = stored[measure] + counts[to] if to in counts else stored[measure]
    return counts


def _percent(share_T: np.ndarray) -> np.ndarray:
    return (100 * share_T).astype(np.float32)


def _equal(first_T: np.ndarray, second_T: np.ndarray | None) -> bool:
    return second_T is not None and np.array_equal(first_T, second_T)
