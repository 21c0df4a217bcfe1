"""The task lists that the stage `episodes` would draw."""

from collections.abc import Callable

from repro.data.dataset import Dataset
from repro.data.episodes import TaskSpec, ways_available
from stages.episodes import specs
from stages.settings.params import Episodes

TaskLists = Callable[[Dataset], list[TaskSpec]]


def all_specs(episodes: Episodes, val_ways: int, seen_classes: int) -> list[TaskSpec]:
    """Of a dataset with so many classes."""
    return [spec for lists in specs(episodes, val_ways, seen_classes).values() for spec in lists.values()]


def task_lists(episodes: Episodes) -> TaskLists:
    """Of the dataset that is given to what comes back."""
    return lambda data: all_specs(episodes, ways_available(data, "val"), data.seen_classes)
