"""Simulated benchmarks: classes and images with effects of their own, tasks that reuse them, and trainings that differ.

The true mean of every value is 0, so an interval covers the truth where it contains 0.
"""

from dataclasses import dataclass

import numpy as np

from repro.results.contents import TaskContents
from repro.results.intervals import Values

CLASSES, IMAGES, SEEN_IMAGES = 20, 40, 600


@dataclass(frozen=True)
class World:
    """Standard deviations, in points, of what another replicate would draw anew; `training` is the seed's own."""

    classes: float = 5.0
    support: float = 15.0
    query: float = 30.0
    seen: float = 40.0
    tasks: float = 3.0
    training: float = 0.0


def draw_contents(random: np.random.Generator, tasks: int, way: int, shot: int = 1, query: int = 10) -> TaskContents:
    """A task list as episodes are drawn: classes, their images, and as many seen images as queries."""
    classes_TW = random.random((tasks, CLASSES)).argsort(axis=1)[:, :way]
    places_TWI = random.random((tasks, way, IMAGES)).argsort(axis=2)[:, :, : shot + query]
    images_TWI = places_TWI + IMAGES * classes_TW[:, :, None]
    seen_TS = random.random((tasks, SEEN_IMAGES)).argsort(axis=1)[:, : way * query]
    return TaskContents(classes_TW, images_TWI[:, :, :shot], images_TWI[:, :, shot:], seen_TS)


@dataclass(frozen=True)
class Effects:
    """What every class and image adds to a task's value; an image adds as support and as query."""

    class_C: np.ndarray
    support_I: np.ndarray
    query_I: np.ndarray
    seen_J: np.ndarray


def draw_effects(random: np.random.Generator, world: World) -> Effects:
    """New classes and images; a hard image is hard in both roles."""
    images_I = random.normal(0, 1, CLASSES * IMAGES)
    own_I = random.normal(0, 1, CLASSES * IMAGES)
    return Effects(
        random.normal(0, world.classes, CLASSES),
        world.support * (images_I + own_I) / 2**0.5,
        world.query * images_I,
        random.normal(0, world.seen, SEEN_IMAGES),
    )


def measured(random: np.random.Generator, world: World, effects: Effects, contents: TaskContents) -> Values:
    """Values of one trained model on a task list."""
    values_T = (
        effects.class_C[contents.classes_TW].mean(axis=1)
        + effects.support_I[contents.support_TWK].mean(axis=(1, 2))
        + effects.query_I[contents.query_TWQ].mean(axis=(1, 2))
        + effects.seen_J[contents.seen_TS].mean(axis=1)
    )
    noise_T = random.normal(0, world.tasks, contents.tasks)
    return Values(values_T + noise_T + random.normal(0, world.training), contents)
