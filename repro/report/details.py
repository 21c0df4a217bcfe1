"""What the report shows of classes, single images and trainings.

Counts per image, pictures and whole trainings are behind it, far more than the records that an edition keeps; so an
edition keeps what was made of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import with_config

from repro.options import STRICT
from repro.report.class_views import DatasetView, view_datasets
from repro.report.courses import Course, view_courses
from repro.report.facts import DatasetFacts, Methods
from repro.results.store import Results


@with_config(STRICT)
@dataclass(frozen=True)
class Details:
    """A view of every dataset, and of every cell the training behind it, seed by seed."""

    datasets: tuple[DatasetView, ...] = ()
    trainings: dict[str, tuple[Course, ...]] = field(default_factory=dict)


def view_details(results: Results, datasets: Mapping[str, DatasetFacts], methods: Methods, way: int) -> Details:
    """What all measured cells have beside their records; nothing of those that have records alone."""
    cells = results.cells()
    return Details(tuple(view_datasets(results, cells, datasets, methods, way)), view_courses(results, cells))
