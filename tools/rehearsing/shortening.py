"""What a rehearsed stage is run with: its own settings, with few tasks and, for `child.py`, few steps and images."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from inspect import signature
from math import ceil
from typing import Any

import torch

from repro.evaluation.bound import BLOCK_QUERIES, BLOCK_QUERIES_ELSEWHERE
from repro.methods.registry import method_class
from stages.settings.params import Episodes
from tools.benchmarks.costs import Backbone, batch_of, images_of
from tools.rehearsing.heavy import images_at_most
from tools.rehearsing.work import Stage, Work

STEPS, HEAVY_STEPS = 9, 3  # of a training, odd: a checkpoint follows every even step, a validation the last
STORED_TASKS = 2000  # of each list; evaluations measure fewer
FAST_BLOCKS = 8  # of tasks, for a method that is quick; one that fine-tunes for each task gets one
SPARE = 4  # images of a class beyond one task's: tasks that are all alike have no interval
SOME_CLASSES = 64  # seen ones: how many images a step draws does not depend on them
SELECTION = 8  # tasks that choose among options, where a method has some to choose


def short_settings(stage: Stage, work: Work, device: torch.device, heavy: Mapping[str, Backbone]) -> Any:
    """The settings of a stage with fewer tasks, and on all ways at which its kind is measured.

    Steps have fewer images where the dataset's backbone is among the `heavy` ones.
    """
    settings = stage.settings
    match stage.kind:
        case "episodes":
            return replace(settings, episodes=short_episodes(settings.episodes))
        case "pretrain" | "train":
            settings = replace(settings, machine=replace(settings.machine, checkpoint_every=2))
            one = heavy.get(settings.dataset)
            return _with_fewer_images(settings, images_at_most(one)) if one else settings
        case "evaluate":
            alike = [
                other.settings
                for other in work.of("evaluate")
                if (other.settings.dataset, other.settings.method) == (settings.dataset, settings.method)
            ]
            ways = tuple(dict.fromkeys(way for each in alike for way in each.ways))
            return replace(
                settings,
                ways=ways,
                seen=any(each.seen for each in alike) and bool(work.resolver.episodes(settings.dataset).seen),
                limit=measured_tasks(settings, ways, work.resolver.episodes(settings.dataset), device),
                selection=replace(settings.selection, tasks=min(settings.selection.tasks, SELECTION)),
            )
        case "paper":
            return replace(settings, seeds=settings.seeds[:1])
        case "summary":
            return replace(settings, seeds=settings.seeds[:1])
    return settings


def _with_fewer_images(settings: Any, most: int) -> Any:
    """A training's settings with about `most` images a step: a smaller batch, or fewer queries of a method."""
    if hasattr(settings, "pretraining"):
        batch = min(settings.pretraining.batch, most)
        return replace(settings, pretraining=replace(settings.pretraining, batch=batch))
    given = signature(method_class(settings.method)).parameters.get("queries")
    if settings.training is None or given is None:
        return settings
    queries = settings.options.get("queries", given.default)
    while queries > 1 and images_of(batch_of(settings, SOME_CLASSES)[0]) > most:
        queries //= 2
        settings = replace(settings, options={**settings.options, "queries": queries})
    return settings


def short_episodes(episodes: Episodes) -> Episodes:
    """The same lists, shorter; validation tasks stay as many, because every validation measures them all."""
    test = tuple(replace(entry, tasks=min(entry.tasks, STORED_TASKS)) for entry in episodes.test)
    return replace(episodes, test=test, seen=min(episodes.seen, STORED_TASKS))


def measured_tasks(settings: Any, ways: Iterable[int], episodes: Episodes, device: torch.device) -> int:
    """Tasks of each list: whole blocks of the fewest ways, as the evaluation scores them."""
    queries = 2 * min(ways) * episodes.query
    block = max(1, BLOCK_QUERIES.get(device.type, BLOCK_QUERIES_ELSEWHERE) // queries)
    slow = len(method_class(settings.method).tuning_grid) > 1
    blocks = min(1 if slow else FAST_BLOCKS, max(1, STORED_TASKS // block))
    return max(2, min(STORED_TASKS, block * blocks))


def images_of_step(settings: Any, seen: int) -> int:
    """The images that each step of a training passes through its backbone; none where that stays fixed."""
    if hasattr(settings, "pretraining"):
        return 0 if settings.random else int(settings.pretraining.batch)
    if settings.training is None:
        return 0
    spec, learns = batch_of(settings, seen)
    return images_of(spec) if learns else 0


def sample_of(dataset: str, work: Work, seen: int) -> dict[str, int]:
    """Images of a class, in each of its domains, that every task list and every training step can be drawn from."""
    episodes = work.resolver.episodes(dataset)
    most_ways, own = max(entry.way for entry in episodes.test), max(episodes.shots) + episodes.query + SPARE
    seen_queries = ceil(most_ways * episodes.query / seen) + 1
    train, at_once = max(episodes.shots), work.resolver.pretraining(dataset).batch
    for stage in work.of("train"):
        if stage.settings.dataset == dataset and stage.settings.training is not None:
            spec, _ = batch_of(stage.settings, seen)
            train, at_once = max(train, spec.shot + spec.queries), max(at_once, spec.free)
    return {
        **dict.fromkeys(("val", "test"), own),
        **dict.fromkeys(("seen_val", "seen_test"), seen_queries),
        "train": max(train, ceil(at_once / seen)),
    }
