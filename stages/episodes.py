"""`python -m stages episodes DATASET [--seed N]`: draw and store the tasks that all methods are measured on."""

import sys
from pathlib import Path
from typing import Any

from repro import paths
from repro.data.dataset import open_dataset
from repro.data.episodes import TaskSpec, draw_tasks, ways_available, write_tasks
from repro.files import SEAL, seal, sha256, whole_folder
from stages.origins import write_origin
from stages.settings.files import read_settings
from stages.settings.kinds import EpisodesSettings
from stages.settings.params import Episodes
from stages.tracking import Log, bad_input_exits, bar, of_seed, record


def specs(episodes: Episodes, val_ways: int, seen_classes: int) -> dict[str, dict[str, TaskSpec]]:
    """Every task list by its split and file; validation lists have as many ways as there are classes for."""
    lists: dict[str, dict[str, TaskSpec]] = {"test": {}, "val": {}}
    for shot in episodes.shots:
        for entry in episodes.test:
            way, val_way = entry.way, min(entry.way, val_ways)
            file = paths.task_list(way, shot)
            lists["test"][file] = TaskSpec("test", way, shot, entry.tasks, episodes.query)
            lists["val"][file] = TaskSpec("val", val_way, shot, episodes.calibration, episodes.query)
        if episodes.seen:
            lists["test"][paths.task_list(None, shot)] = TaskSpec("seen", seen_classes, shot, episodes.seen, query=1)
    return lists


def episodes(settings: EpisodesSettings, log: Log) -> dict[str, Any]:
    """Draw every list; what comes back names each by its content."""
    data = open_dataset(paths.dataset(settings.dataset, settings.seed))
    wanted = specs(settings.episodes, ways_available(data, "val"), data.seen_classes)
    digests: dict[str, str] = {}
    made: dict[str, str] = {}
    with bar(f"tasks {settings.dataset}", sum(map(len, wanted.values())), "list") as shown:
        for split, lists in wanted.items():
            with whole_folder(paths.episodes(settings.dataset, split, settings.seed)) as folder:
                for file, spec in lists.items():
                    tasks = draw_tasks(data, spec, settings.seed)
                    write_tasks(folder / file, tasks)
                    digests[f"{split}/{Path(file).stem}"] = tasks.digest
                    shown.update()
                seal(folder)
                name = f"{settings.dataset}-{split}"
                made |= write_origin(folder, "episodes", name, settings, sha256(folder / SEAL))["outputs"]
    print(f"{settings.dataset}: {len(digests)} lists of tasks")
    return {**digests, "outputs": made}


if __name__ == "__main__":
    with bad_input_exits():
        settings = read_settings(EpisodesSettings, sys.argv[1:])
    record(episodes, settings, stage="episodes", cell=of_seed(settings.dataset, settings.seed))
