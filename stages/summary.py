"""`python -m stages summary experiment`: its numbers over all seeds, for `dvc metrics` and `dvc plots`."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from repro import paths
from repro.files import check_seal, whole_file
from repro.results.intervals import Mean, Values, estimate
from repro.results.records import CURVES, RECORDS, group_name, read_records, write_json
from stages.settings.files import read_settings
from stages.settings.kinds import SummarySettings
from stages.tracking import Log, bad_input_exits, record

HEADLINE = ("hm", "acc", "delta", "ausuc")  # what `dvc exp show` has a column for
MEASURES = (*HEADLINE, "cal_hm", "s_su", "u_su", "s_s", "u_u")


def summary(settings: SummarySettings, log: Log) -> dict[str, Any]:
    """Write the headline, all measures with both intervals, HM by way, and the mean curves."""
    folders = [paths.results(settings.cell, seed) for seed in settings.seeds]
    for folder in folders:
        check_seal(folder)
    records = [read_records(folder / RECORDS) for folder in folders]

    def of_seeds(measure: str, way: int = settings.way) -> list[np.ndarray]:
        return [each.values("gfsl", way, measure) for each in records]

    ways = sorted(way for protocol, way in records[0].groups() if protocol == "gfsl")
    measures: dict[str, float] = {"seeds": len(folders)}
    for measure in MEASURES:
        measures |= shown(measure, of_seeds(measure))
    by_way = [[way, *(over_seeds(of_seeds(measure, way)).mean for measure in ("hm", "cal_hm"))] for way in ways]
    measures |= {f"hm_{way}way": round(hm, 4) for way, hm, _ in by_way}
    write_json(paths.SUMMARY / "measures.json", measures)
    write_json(paths.SUMMARY / "metrics.json", {name: round(measures[name], 2) for name in HEADLINE})
    write_rows("ways.csv", pd.DataFrame(by_way, columns=["ways", "hm", "cal_hm"]))
    write_rows("seen_unseen.csv", seen_unseen(folders, settings.way))
    curve = training_curve([paths.model(settings.cell, seed) / "curve.csv" for seed in settings.seeds])
    for column, name in (("loss", "loss.csv"), ("val_hm", "validation.csv")):
        write_rows(name, curve[["step", column]].dropna())  # DVC would draw an empty place as 0
    for name, value in measures.items():
        log.log_scalar(name, value)
    numbers = f"HM {measures['hm']:.2f}, AUSUC {measures['ausuc']:.2f}"
    print(f"{settings.cell} at {settings.way} ways, seeds {', '.join(map(str, settings.seeds))}: {numbers}")
    return measures


def over_seeds(seeds: list[np.ndarray]) -> Mean:
    """The mean with its interval over tasks and, of three seeds or more, over seeds."""
    return estimate([[Values(values)] for values in seeds])


def shown(name: str, seeds: list[np.ndarray]) -> dict[str, float]:
    """A measure and half the width of its 95 % intervals."""
    found = over_seeds(seeds)
    numbers = {name: found.mean, f"{name}_tasks": found.ci, f"{name}_seeds": found.wide}
    return {key: round(value, 4) for key, value in numbers.items() if not np.isnan(value)}


def seen_unseen(folders: list[Path], way: int) -> pd.DataFrame:
    """The mean seen-unseen curve: every seed has its seen accuracy at the same unseen accuracies."""
    curves = [json.loads((folder / CURVES).read_bytes())[group_name("gfsl", way)] for folder in folders]
    return pd.DataFrame(np.mean(curves, axis=0), columns=["unseen", "seen"])


def training_curve(files: list[Path]) -> pd.DataFrame:
    """Mean loss and validation of every step; without a step for a method that has no training."""
    curves = [pd.read_csv(file)[["step", "loss", "val_hm"]] for file in files if file.is_file()]
    if not curves:
        return pd.DataFrame(columns=["step", "loss", "val_hm"])
    return pd.concat(curves).groupby("step").mean().reset_index()


def write_rows(name: str, table: pd.DataFrame) -> None:
    """Write a small table as `dvc plots` reads it."""
    with whole_file(paths.SUMMARY / name) as partial:
        table.round(4).to_csv(partial, index=False, lineterminator="\n")


if __name__ == "__main__":
    with bad_input_exits():
        settings = read_settings(SummarySettings, sys.argv[1:])
    record(summary, settings, stage="summary", cell=settings.cell)
