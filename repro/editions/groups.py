"""The rows of an edition's records: which are whose, and what is kept of few-shot use."""

from dataclasses import dataclass

import numpy as np

VALUES, FACTS = "records.parquet", "records.json.gz"
COUNT, VALUE = "count.", "value."  # of the names of columns
AREA, OWN = "ausuc", "u_u"
METRICS = "metrics.json"  # beside a record


@dataclass(frozen=True)
class Group:
    """The rows of one cell, seed, protocol and way; every task has the same number of queries of each kind."""

    cell: str
    seed: int
    protocol: str
    way: int
    tasks: int
    queries: int

    @property
    def folder(self) -> str:
        """Where the record lies below all results."""
        return f"{self.cell}/{self.seed}"


class SharedTasks:
    """Counts of few-shot use less those of U→U in the joint evaluation of the same tasks: most are equal."""

    def __init__(self) -> None:
        self._joint: dict[tuple[str, int], np.ndarray] = {}

    def less_joint(self, group: Group, counts: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """As they are stored; a joint group comes before its few-shot use."""
        return self._moved(group, counts, -1)

    def with_joint(self, group: Group, stored: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The inverse."""
        return self._moved(group, stored, 1)

    def _moved(self, group: Group, counts: dict[str, np.ndarray], sign: int) -> dict[str, np.ndarray]:
        place = (group.folder, group.way)
        if group.protocol == "gfsl" and OWN in counts:
            self._joint[place] = counts[OWN]
        joint_T = self._joint.get(place)
        if group.protocol != "fsl" or OWN not in counts or joint_T is None or len(joint_T) != group.tasks:
            return counts
        return {**counts, OWN: counts[OWN] + sign * joint_T}
