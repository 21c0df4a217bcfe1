"""What lies behind a number, small enough for a page: values over tasks as a histogram, seeds, chance."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from repro.report.facts import DatasetFacts
from repro.report.tables import rounded
from repro.results.store import Reading, Results

BINS = 24
OF_SEEN = ("s_s", "map_s", "syn_s", "proto_s", "many_s")
OF_UNSEEN = ("u_u", "map_u")
OF_BOTH = ("acc", "s_su", "u_su", "hm", "cal_acc", "cal_s_su", "cal_u_su", "cal_hm")


def key_of(reading: Reading) -> str:
    """How the page names a reading."""
    return f"{reading.cell.name}|{reading.protocol}|{reading.way}|{reading.measure}"


def chance(measure: str, seen: int, way: int) -> float | None:
    """What guessing gives in percent, where a measure has such a level."""
    choices = {**dict.fromkeys(OF_SEEN, seen), **dict.fromkeys(OF_UNSEEN, way), **dict.fromkeys(OF_BOTH, seen + way)}
    return 100 / choices[measure] if measure in choices else None


def distributions(
    results: Results, readings: Iterable[Reading], datasets: Mapping[str, DatasetFacts]
) -> dict[str, dict[str, Any]]:
    """By key of the reading: `low`, `high` and the counts between, means by seed, and the chance level."""
    return {key_of(reading): found for reading in dict.fromkeys(readings) if (found := _of(results, reading, datasets))}


def _of(results: Results, reading: Reading, datasets: Mapping[str, DatasetFacts]) -> dict[str, Any] | None:
    sample = results.sample(reading)
    if sample is None:
        return None
    values = np.concatenate([each.values for each in sample.seeds.values()])
    counts, edges = np.histogram(values, BINS)
    shown = {
        "low": round(float(edges[0]), 2),
        "high": round(float(edges[-1]), 2),
        "counts": counts.tolist(),
        "seeds": {seed: rounded(float(each.values.mean())) for seed, each in sample.seeds.items()},
    }
    way, facts = results.ways(reading.cell.dataset, reading.way), datasets.get(reading.cell.dataset)
    level = chance(reading.measure, facts.seen, way or facts.seen) if facts else None
    return shown if level is None else shown | {"chance": rounded(level)}
