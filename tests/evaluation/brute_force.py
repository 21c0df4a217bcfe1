"""Second routes: every measure of one task by plain loops over queries, classes and biases."""

from collections.abc import Sequence

import numpy as np


def predictions(seen: np.ndarray, unseen: np.ndarray, bias: float) -> list[int]:
    """Predicted joint labels with `bias` subtracted from the seen logits; the first of equal logits wins."""
    rows = []
    for seen_row, unseen_row in zip(seen, unseen, strict=True):
        joint = [*(value - seen.dtype.type(bias) for value in seen_row), *unseen_row]
        rows.append(joint.index(max(joint)))
    return rows


def accuracy(predicted: Sequence[int], labels: Sequence[int]) -> float:
    """Share of right ones."""
    return sum(int(p) == int(label) for p, label in zip(predicted, labels, strict=True)) / len(labels)


def balanced(predicted: Sequence[int], labels: Sequence[int]) -> float:
    """Mean over the classes that occur of the accuracy within the class."""
    per_class = []
    for label in sorted({int(label) for label in labels}):
        own = [int(p) == label for p, true in zip(predicted, labels, strict=True) if int(true) == label]
        per_class.append(sum(own) / len(own))
    return sum(per_class) / len(per_class)


def harmonic(first: float, second: float) -> float:
    """Harmonic mean, 0 for two zeros."""
    return 2 * first * second / (first + second) if first + second > 0 else 0.0


def measures(seen: np.ndarray, unseen: np.ndarray, labels: np.ndarray, th: int, bias: float) -> dict[str, float]:
    """Accuracies, HM and Δ as fractions."""
    classes, joint = seen.shape[1], predictions(seen, unseen, 0.0)
    s_su, u_su = accuracy(joint[:th], labels[:th]), accuracy(joint[th:], labels[th:])
    s_s = accuracy([list(row).index(max(row)) for row in seen[:th]], labels[:th])
    u_u = accuracy([classes + list(row).index(max(row)) for row in unseen[th:]], labels[th:])
    shifted = predictions(seen, unseen, bias)
    cal_s_su, cal_u_su = accuracy(shifted[:th], labels[:th]), accuracy(shifted[th:], labels[th:])
    return {
        "acc": accuracy(joint, labels),
        "s_s": s_s,
        "u_u": u_u,
        "s_su": s_su,
        "u_su": u_su,
        "hm": harmonic(s_su, u_su),
        "delta": ((s_s - s_su) + (u_u - u_su)) / 2,
        "cal_acc": accuracy(shifted, labels),
        "cal_s_su": cal_s_su,
        "cal_u_su": cal_u_su,
        "cal_hm": harmonic(cal_s_su, cal_u_su),
    }


def curve(seen: np.ndarray, unseen: np.ndarray, labels: np.ndarray, th: int) -> list[tuple[float, float]]:
    """(unseen, seen) class-balanced accuracies from β = −∞ over every interval between biases to β = +∞."""
    gaps = sorted({float(row.max() - other.max()) for row, other in zip(seen, unseen, strict=True)})
    between = [(low + high) / 2 for low, high in zip(gaps[:-1], gaps[1:], strict=True)]
    points = []
    for bias in [gaps[0] - 1, *between, gaps[-1] + 1]:
        predicted = []
        for row, other in zip(seen, unseen, strict=True):
            is_seen = float(row.max() - other.max()) > bias
            predicted.append(list(row).index(max(row)) if is_seen else len(row) + list(other).index(max(other)))
        points.append((balanced(predicted[th:], labels[th:]), balanced(predicted[:th], labels[:th])))
    return points


def area(points: list[tuple[float, float]]) -> float:
    """Trapezoids under the curve."""
    return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in zip(points[:-1], points[1:], strict=True))


def average_precision(scores: Sequence[float], relevant: Sequence[bool]) -> float:
    """Σ (R_n − R_{n−1})·P_n over the distinct scores from the highest down; 0 without a relevant item."""
    if not any(relevant):
        return 0.0
    total, recall = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        found = [is_relevant for score, is_relevant in zip(scores, relevant, strict=True) if score >= threshold]
        now = sum(found) / sum(relevant)
        total, recall = total + (now - recall) * sum(found) / len(found), now
    return total


def mean_average_precision(logits: np.ndarray, labels: np.ndarray) -> float:
    """Mean over all columns, those without a query of their class as 0."""
    columns = range(logits.shape[1])
    return sum(average_precision(logits[:, c].tolist(), (labels == c).tolist()) for c in columns) / len(columns)
