"""`python -m stages evaluate CELL [--seed N]`: measure one method on the stored tasks.

`evaluate experiment` measures what params.yaml begins with.
"""

import logging
import shutil
import sys
from pathlib import Path
from typing import Any

from repro import paths
from repro.data.dataset import open_dataset
from repro.data.episodes import Tasks, draw_exemplars, read_tasks
from repro.evaluation.cell import Evaluation, evaluate_cell
from repro.evaluation.overlap import overlapping
from repro.files import seal, sha256, whole_folder
from repro.models.device import pick_device, use_cpu
from repro.results.chance import ARROWS, chance_warnings
from repro.results.contents import StoredContents
from repro.results.counts import write_counts
from repro.results.intervals import mean_interval
from repro.results.records import (
    CURVES,
    RECORDS,
    SHOWN,
    TASKS,
    TRAINING,
    Records,
    by_name,
    group_name,
    read_records,
    summarise,
    write_json,
    write_records,
)
from repro.trained.building import completed
from repro.trained.folders import EXEMPLARS, read_embedded
from repro.trained.selection import Candidates
from stages.origins import write_origin
from stages.settings.files import read_settings
from stages.settings.kinds import EvaluateSettings
from stages.tracking import Log, bad_input_exits, bar, of_seed, record


def evaluate(settings: EvaluateSettings, log: Log) -> dict[str, Any]:
    """Load, tune on validation tasks where the method asks for it, measure, and write the per-task records."""
    use_cpu(settings.threads)
    dataset, shot, seed, memory_mb = settings.dataset, settings.shot, settings.seed, settings.machine.memory_mb
    data, device = open_dataset(paths.dataset(dataset, seed)), pick_device(settings.machine.device)
    model = paths.replicate(Path(settings.model), seed)
    embedded = read_embedded(model)

    def stored(split: str, way: int | None) -> Tasks:
        return read_tasks(paths.tasks(dataset, split, way, shot, seed))

    test, val = ({way: stored(split, way) for way in settings.ways} for split in ("test", "val"))
    seen = stored("test", None) if settings.seen else None
    tuning = stored("val", settings.selection.way)
    candidates = Candidates(model, settings.method, settings.options, embedded, data, seed)
    chosen, method = candidates.best(tuning, settings.selection.tasks, memory_mb, device)
    if seen is not None:
        embedded = completed(embedded, method, data, seen.support_TWK, device)
    exemplars_SM = draw_exemplars(data, EXEMPLARS, seed)
    again = [test[way] for way in settings.few_shot if way in test]
    again += [test[settings.ways[0]]] * len(settings.overlap)
    lists = [*test.values(), *val.values(), *again, *([seen] if seen else [])]
    planned = sum(min(settings.limit or tasks.spec.tasks, tasks.spec.tasks) for tasks in lists)
    with bar(settings.cell, planned, "task") as shown:
        evaluation = evaluate_cell(
            method,
            embedded,
            data,
            test,
            val,
            few_shot_ways=settings.few_shot,
            detailed_ways=settings.detailed,
            few_shot_model=candidates.few_shot(),
            seen=seen,
            overlaps={
                f"overlap{percent}": overlapping(embedded, data, exemplars_SM, percent, seed)
                for percent in settings.overlap
            },
            limit=settings.limit,
            memory_mb=memory_mb,
            device=device,
            progress=shown.update,
        )
    facts = {
        "cell": settings.cell,
        "dataset": dataset,
        "method": settings.method,
        "shot": shot,
        "benchmark": settings.benchmark,
        "options": chosen,
        "model": embedded.model,
        "biases": by_name(evaluation.biases),
        TASKS: by_name(evaluation.tasks),
    }
    with whole_folder(paths.results(settings.cell, seed)) as folder:
        contents = StoredContents(paths.episodes(dataset, "test", seed))
        if (model / "curve.csv").is_file():
            shutil.copyfile(model / "curve.csv", folder / TRAINING)
        result = write_results(folder, evaluation, facts, contents, settings.way, log)
        warn_of_chance(settings, read_records(folder / RECORDS), data.seen_classes)
        return result | write_origin(folder, "evaluate", settings.cell, settings, result["records"])


def warn_of_chance(settings: EvaluateSettings, records: Records, seen: int) -> None:
    """Say so where the method has learnt nothing; the report says it again."""
    values = {name: mean_interval(records.values("gfsl", settings.way, name)) for name in ARROWS}
    found = {name: (mean.mean, mean.ci) for name, mean in values.items()}
    for sentence in chance_warnings(settings.cell, found, seen, settings.way):
        logging.getLogger(__name__).warning("warning: %s", sentence)


def write_results(
    folder: Path, evaluation: Evaluation, facts: dict[str, Any], contents: StoredContents, way: int, log: Log
) -> dict[str, Any]:
    """Write records, metrics with both intervals, curves and counts; give a dashboard the numbers of the chosen way.

    The log gets each measure as a series over ways.
    """
    write_records(folder / RECORDS, evaluation.columns, facts)
    metrics = {
        group: {name: values[name] for name in SHOWN if name in values} | {"tasks": values["tasks"]}
        for group, values in summarise(read_records(folder / RECORDS), contents).items()
    }
    write_json(folder / "metrics.json", metrics)
    write_json(folder / CURVES, by_name(evaluation.curves))
    write_counts(folder, evaluation.images, evaluation.confusions)
    seal(folder)
    for name in ("metrics.json", CURVES):
        log.add_artifact(str(folder / name), name=name)
    for ways in sorted(ways for protocol, ways in evaluation.tasks if protocol == "gfsl"):
        for name, value in rounded_means(metrics[group_name("gfsl", ways)]).items():
            log.log_scalar(name, value, ways)
    shown = rounded_means(metrics[group_name("gfsl", way)])
    print(f"{facts['cell']}, {way} ways: HM {shown['hm']}, calibrated {shown['cal_hm']}, AUSUC {shown['ausuc']}")
    return {**shown, "records": sha256(folder / RECORDS)}


def rounded_means(measures: dict[str, Any]) -> dict[str, float]:
    """What a dashboard shows of a group of tasks."""
    return {name: round(measures[name]["mean"], 2) for name in SHOWN if name in measures}


if __name__ == "__main__":
    with bad_input_exits():
        settings = read_settings(EvaluateSettings, sys.argv[1:])
    record(evaluate, settings, stage="evaluate", cell=of_seed(settings.cell, settings.seed))
