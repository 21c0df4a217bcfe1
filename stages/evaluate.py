"""`python -m stages evaluate CELL --dataset … --method … --shot … --model … --ways …`: measure one method on its tasks.

dvc.yaml writes the command out for every cell of paper/grid.yaml (`_arguments.py` reads it). `evaluate experiment`
takes nothing else: params.yaml begins with what it measures.
"""

import csv
import logging
import sys
from pathlib import Path
from typing import Any

import torch

from repro import paths
from repro.data.dataset import Dataset, open_dataset
from repro.data.episodes import Tasks, read_tasks
from repro.errors import BadInput
from repro.evaluation.cell import Evaluation, evaluate_cell, mean_hm
from repro.evaluation.embed import Embedded
from repro.files import seal, sha256, whole_file
from repro.methods.base import Method
from repro.methods.registry import method_class
from repro.models.device import pick_device
from repro.results.records import (
    RECORDS,
    TASKS,
    by_name,
    group_name,
    read_records,
    summarise,
    write_json,
    write_records,
)
from stages._experiment import Experiment, Run, bad_input_exits, prepare, run
from stages._params import Machine, read_params
from stages._progress import bar
from stages.shared.configs import evaluation_config
from stages.shared.methods import completed, load_method, remember
from stages.shared.models import read_embedded

ex = prepare(Experiment("evaluate"))
logger = logging.getLogger(__name__)
SHOWN = (
    *("hm", "acc", "ausuc", "delta", "cal_hm", "s_s", "u_u", "s_su", "u_su", "map_hm", "conf_ratio"),
    *("syn_s", "proto_s", "many_s"),
)


@ex.main
def main(
    cell: str,
    dataset: str,
    method: str,
    shot: int,
    model: str,
    options: dict[str, Any],
    way: int,
    ways: list[int],
    few_shot: list[int],
    detailed: list[int],
    seen: bool,
    limit: int | None,
    selection: dict[str, int],
    benchmark: str,
    machine: dict[str, Any],
    threads: int,
    seed: int,
    _run: Run,
) -> dict[str, Any]:
    """Load, tune on validation tasks where the method asks for it, measure, and write the per-task records."""
    torch.set_num_threads(threads)
    data, computer = open_dataset(paths.dataset(dataset)), Machine(**machine)
    folder, device = Path(model), pick_device(computer.device)
    embedded = read_embedded(folder)
    test, val = (
        {count: read_tasks(paths.tasks(dataset, split, count, shot)) for count in ways} for split in ("test", "val")
    )
    seen_tasks = read_tasks(paths.tasks(dataset, "test", None, shot)) if seen else None

    candidates = Candidates(folder, method, options, embedded, data, seed)
    tuning = read_tasks(paths.tasks(dataset, "val", selection["way"], shot))
    chosen, built = candidates.best(tuning, selection["tasks"], computer.memory_mb, device)
    if seen_tasks is not None:
        embedded = completed(embedded, built, data, seen_tasks.support_TWK, device)
    again = [test[count] for count in few_shot if count in test]
    measured = [*test.values(), *val.values(), *again, *([seen_tasks] if seen_tasks else [])]
    planned = sum(min(limit or tasks.spec.tasks, tasks.spec.tasks) for tasks in measured)
    with bar(cell, planned, "task") as shown:
        evaluation = evaluate_cell(
            built,
            embedded,
            data,
            test,
            val,
            few_shot_ways=tuple(few_shot),
            detailed_ways=tuple(detailed),
            seen=seen_tasks,
            limit=limit,
            memory_mb=computer.memory_mb,
            device=device,
            progress=shown.update,
        )
    facts = {
        "cell": cell,
        "dataset": dataset,
        "method": method,
        "shot": shot,
        "benchmark": benchmark,
        "options": chosen,
    }
    facts |= {"model": embedded.model, "biases": by_name(evaluation.biases), TASKS: by_name(evaluation.tasks)}
    return write_results(paths.results(cell), evaluation, facts, way, _run)


class Candidates:
    """A method with each of the option sets among which validation chooses; most methods have one."""

    def __init__(
        self, folder: Path, name: str, options: dict[str, Any], embedded: Embedded, data: Dataset, seed: int
    ) -> None:
        self.folder, self.name, self.options = folder, name, options
        self.embedded, self.data, self.seed = embedded, data, seed

    def build(self, tuned: dict[str, Any]) -> Method:
        """The method with these options besides its own, ready to be measured."""
        method = load_method(self.folder, self.name, {**self.options, **tuned}, self.seed)
        remember(method, self.embedded, self.data, self.seed)
        return method

    def best(self, tasks: Tasks, number: int, memory_mb: int, device: torch.device) -> tuple[dict[str, Any], Method]:
        """The option set with the largest HM on validation tasks, and the method built with it."""
        grid = method_class(self.name).tuning_grid
        chosen, method, best = grid[0], self.build(grid[0]), 0.0
        if len(grid) > 1:
            best = self._validated(method, tasks, number, memory_mb, device)
        for tuned in grid[1:]:
            other = self.build(tuned)
            if (value := self._validated(other, tasks, number, memory_mb, device)) > best:
                chosen, method, best = tuned, other, value
        return {**self.options, **chosen}, method

    def _validated(self, method: Method, tasks: Tasks, number: int, memory_mb: int, device: torch.device) -> float:
        """Mean HM on validation tasks; below any other where fine-tuning with these options diverges."""
        try:
            return mean_hm(method, self.embedded, self.data, tasks, limit=number, memory_mb=memory_mb, device=device)
        except BadInput as error:
            logger.info("an option set is left out: %s", error)
            return -1.0


def write_results(folder: Path, evaluation: Evaluation, facts: dict[str, Any], way: int, log: Run) -> dict[str, Any]:
    """Write records, metrics and curves; give the numbers of the chosen way, which a dashboard shows."""
    write_records(folder / RECORDS, evaluation.columns, facts)
    records = read_records(folder / RECORDS)
    metrics = {
        group: {name: values[name] for name in SHOWN if name in values} | {"tasks": values["tasks"]}
        for group, values in summarise(records).items()
    }
    write_json(folder / "metrics.json", metrics)
    write_json(folder / "curve.json", by_name(evaluation.curves))
    write_rows(folder / "seen_unseen.csv", ["unseen", "seen"], evaluation.curves["gfsl", way])
    joint = {ways: metrics[group_name(name, ways)] for name, ways in records.groups() if name == "gfsl"}
    by_way = [[ways, values["hm"]["mean"], values["cal_hm"]["mean"]] for ways, values in sorted(joint.items())]
    write_rows(folder / "ways.csv", ["ways", "hm", "cal_hm"], by_way)
    seal(folder, RECORDS, "metrics.json", "curve.json")
    for name in ("metrics.json", "curve.json"):
        log.add_artifact(str(folder / name), name=name)
    shown = {name: round(joint[way][name]["mean"], 2) for name in SHOWN if name in joint[way]}
    for name, value in shown.items():
        log.log_scalar(name, value)
    return {**shown, "records": sha256(folder / RECORDS)}


def write_rows(file: Path, names: list[str], rows: list[list[Any]]) -> None:
    """Write a small table as `dvc plots` reads it."""
    with whole_file(file) as partial, partial.open("w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([names, *rows])


if __name__ == "__main__":
    with bad_input_exits():
        params = read_params(paths.PARAMS)
        config = evaluation_config(sys.argv, params)
        method_class(config["method"])  # loaded before the run begins, so that its file is among the recorded sources
    run(ex, config, stage="evaluate", cell=config["cell"])
