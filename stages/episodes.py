"""`python -m stages episodes DATASET`: draw and store the tasks that all methods are measured on."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

from repro import paths
from repro.data.dataset import open_dataset
from repro.data.episodes import Tasks, TaskSpec, draw_tasks, ways_available, write_tasks
from stages._arguments import the_name
from stages._experiment import Experiment, Run, bad_input_exits, prepare, run
from stages._params import EpisodeParams, read_params
from stages._progress import bar

ex = prepare(Experiment("episodes"))


def specs(dataset: str, episodes: EpisodeParams, val_ways: int, seen_classes: int) -> dict[Path, TaskSpec]:
    """Every task list by its file; validation lists have as many ways as there are classes for."""
    lists, file = {}, partial(paths.tasks, dataset)
    for shot in episodes.shots:
        for entry in episodes.test:
            way, val_way = entry.way, min(entry.way, val_ways)
            lists[file("test", way, shot)] = TaskSpec("test", way, shot, entry.tasks, episodes.query)
            lists[file("val", way, shot)] = TaskSpec("val", val_way, shot, episodes.calibration, episodes.query)
        if episodes.seen:
            lists[file("test", None, shot)] = TaskSpec("seen", seen_classes, shot, episodes.seen, query=1)
    return lists


@ex.main
def draw(dataset: str, episodes: dict[str, Any], seed: int, _run: Run) -> dict[str, str]:
    """Draw every list; what comes back names each by its content."""
    data = open_dataset(paths.dataset(dataset))
    wanted = specs(dataset, EpisodeParams(**episodes), ways_available(data, "val"), data.seen_classes)
    digests = {}
    with bar(f"tasks {dataset}", len(wanted), "list") as shown:
        for file, spec in wanted.items():
            tasks: Tasks = draw_tasks(data, spec, seed)
            write_tasks(file, tasks)
            digests[f"{file.parent.name}/{file.stem}"] = tasks.digest
            shown.update()
    return digests


if __name__ == "__main__":
    with bad_input_exits():
        params = read_params(paths.PARAMS)
        name = the_name(sys.argv, "dataset", params.datasets)
        config = {"dataset": name, "episodes": params.episodes[name].model_dump(), "seed": params.seed}
    run(ex, config, stage="episodes", cell=name)
