"""A dataset looked at class by class and image by image: what is hard, what is confused, what is never right.

Methods are taken together where a dataset is hard, and apart where they differ; all of the first seed, at one way and
the smallest shot. C classes, M methods, T tasks.
"""

from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Annotated

import numpy as np
from pydantic import with_config

from repro.options import STRICT, in_form
from repro.report.facts import DatasetFacts, Methods
from repro.report.tables import rounded
from repro.results.contents import TaskContents
from repro.results.counts import CellCounts, has_counts
from repro.results.store import Cell, Results

CLASSES, PAIRS, IMAGES = 8, 10, 24  # how many are shown
PIXELS = 48  # the longer side of a picture
Picture = Annotated[str, in_form("data:image/png;base64,[A-Za-z0-9+/=]+", "a PNG that the page holds itself")]


@with_config(STRICT)
@dataclass(frozen=True)
class ClassView:
    """One class: accuracy in the joint label set in percent, mean and best of all methods."""

    name: str
    kind: str
    picture: Picture
    mean: str
    best: str
    best_method: str


@with_config(STRICT)
@dataclass(frozen=True)
class PairView:
    """Queries of `truth` taken for `taken_for`, in percent of those that could have been."""

    truth: str
    taken_for: str
    pictures: tuple[Picture, Picture]
    share: str


@with_config(STRICT)
@dataclass(frozen=True)
class DatasetView:
    """The section of one dataset; `shares` are the classes' accuracies by method, `classes` their names."""

    name: str
    way: int
    shot: int
    methods: tuple[str, ...]
    hardest: tuple[ClassView, ...]
    pairs: tuple[PairView, ...]
    never_right: tuple[tuple[Picture, str, int], ...]  # picture, class, how often it was asked for
    classes: tuple[str, ...]
    shares: dict[str, list[float]]


def view_datasets(
    results: Results, cells: Sequence[Cell], datasets: Mapping[str, DatasetFacts], methods: Methods, way: int
) -> list[DatasetView]:
    """A view of every dataset whose cells kept counts, at `way` or the smallest that they have instead."""
    views = []
    for name, facts in datasets.items():
        plain = [cell for cell in cells if cell.dataset == name and not cell.variant]
        kept = {cell: records for cell in plain if (records := results.cell(cell)) and has_counts(records.folder)}
        if not kept or not facts.pictures_of:
            continue
        ways = {each for records in kept.values() for each in records.ways("gfsl")}
        shown = way if way in ways else min(ways)
        kept = {cell: records for cell, records in kept.items() if shown in records.ways("gfsl")}
        shot = min(cell.shot for cell in kept)
        of_shot = {cell.method: records for cell, records in kept.items() if cell.shot == shot}
        counts = {method: CellCounts(records.folder, shown) for method, records in of_shot.items()}
        _, tasks = next(iter(of_shot.values())).task_list("gfsl", shown)
        views.append(_view(facts, counts, results.contents(tasks), methods, shown, shot))
    return views


def _view(
    facts: DatasetFacts,
    counts: Mapping[str, CellCounts],
    contents: TaskContents | None,
    methods: Methods,
    way: int,
    shot: int,
) -> DatasetView:
    pictures = _Pictures(facts)
    asked = next(iter(counts.values())).images
    example_of = dict(zip(asked["label"][::-1].tolist(), asked["image"][::-1].tolist(), strict=True))
    shares = {methods.label(name): of.of_classes("joint") for name, of in counts.items()}
    labels = sorted(set.intersection(*(set(of) for of in shares.values())))
    table_MC = np.array([[of[label] for label in labels] for of in shares.values()])

    def class_view(place: int) -> ClassView:
        label, best = labels[place], int(table_MC[:, place].argmax())
        kind = "seen" if label < facts.seen else "unseen"
        values = rounded(float(table_MC[:, place].mean())), rounded(float(table_MC[best, place]))
        return ClassView(facts.classes[label], kind, pictures(example_of[label]), *values, list(shares)[best])

    order = np.argsort(table_MC.mean(axis=0), kind="stable").tolist()
    hardest = [place for kind in (True, False) for place in _first(order, labels, facts.seen, kind)]
    pairs = _confused(counts, contents, asked) if contents else []
    return DatasetView(
        facts.title,
        way,
        shot,
        tuple(shares),
        tuple(map(class_view, hardest)),
        tuple(
            PairView(
                facts.classes[truth],
                facts.classes[taken],
                (pictures(example_of[truth]), pictures(example_of[taken])),
                rounded(share),
            )
            for truth, taken, share in pairs
            if truth in example_of and taken in example_of
        ),
        tuple((pictures(row), facts.classes[label], times) for row, label, times in _never_right(counts)),
        tuple(facts.classes[label] for label in labels),
        {name: [round(value, 1) for value in row] for name, row in zip(shares, table_MC.tolist(), strict=True)},
    )


def _first(order: Sequence[int], labels: Sequence[int], seen: int, of_seen: bool) -> list[int]:
    return [place for place in order if (labels[place] < seen) == of_seen][:CLASSES]


def _confused(
    counts: Mapping[str, CellCounts], contents: TaskContents, asked: Mapping[str, np.ndarray]
) -> list[tuple[int, int, float]]:
    """True class, what it was taken for, and in how many of a hundred queries that had the choice; worst first."""
    confusions = [of.confusions for of in counts.values()]
    number = 1 + max(int(of[name].max(initial=0)) for of in confusions for name in ("truth", "predicted"))
    taken_CC = np.zeros((number, number))
    for of in confusions:
        np.add.at(taken_CC, (of["truth"], of["predicted"]), of["count"])
    per_task = contents.query_TWQ[0].size + contents.seen_TS.shape[1]
    tasks = Counter(int(of.images["asked"].sum()) // per_task for of in counts.values())
    could_CC = sum(times * _choices(contents.first(first), asked, number) for first, times in tasks.items())
    np.fill_diagonal(taken_CC, 0)
    share_CC = np.divide(100 * taken_CC, could_CC, out=np.zeros_like(taken_CC), where=could_CC > 0)
    worst = np.argsort(-share_CC, axis=None, kind="stable")[:PAIRS]
    return [
        (int(truth), int(taken), float(share_CC[truth, taken]))
        for truth, taken in zip(*np.unravel_index(worst, share_CC.shape), strict=True)
        if share_CC[truth, taken] > 0
    ]


def _choices(contents: TaskContents, asked: Mapping[str, np.ndarray], number: int) -> np.ndarray:
    """How many queries of each class (rows) had each class among their choices: seen ones always, others in a task."""
    tasks, way, query = contents.query_TWQ.shape
    label_of = np.zeros(int(asked["image"].max()) + 1, np.int64)
    label_of[asked["image"]] = asked["label"]
    queries_TC, choice_TC = np.zeros((tasks, number), np.float32), np.zeros((tasks, number), np.float32)
    task = np.arange(tasks)[:, None]
    np.add.at(queries_TC, (task, label_of[contents.seen_TS]), 1)
    queries_TC[task, contents.classes_TW] = query
    choice_TC[task, contents.classes_TW] = 1
    choice_TC[:, np.unique(label_of[contents.seen_TS])] = 1
    return np.asarray(queries_TC.T @ choice_TC, np.float64)


def _never_right(counts: Mapping[str, CellCounts]) -> list[tuple[int, int, int]]:
    """Row, label and number of queries of the images that no method ever got right, the most asked for first."""
    images = [of.images for of in counts.values()]
    rows = np.concatenate([of["image"] for of in images])
    asked, right = (np.bincount(rows, np.concatenate([of[name] for of in images])) for name in ("asked", "joint"))
    label_of = np.zeros(len(asked), np.int64)
    label_of[rows] = np.concatenate([of["label"] for of in images])
    never = np.flatnonzero((asked > 0) & (right == 0))
    first = never[np.argsort(-asked[never], kind="stable")][:IMAGES]
    return [(int(row), int(label_of[row]), int(asked[row])) for row in first]


class _Pictures:
    """Images of a dataset as small PNGs that a page holds itself."""

    def __init__(self, facts: DatasetFacts) -> None:
        assert facts.pictures_of is not None
        self._of: Callable[[np.ndarray], np.ndarray] = facts.pictures_of
        self._made: dict[int, str] = {}

    def __call__(self, row: int) -> str:
        """The address of one image."""
        from PIL import Image

        if row not in self._made:
            (image_HWC,) = self._of(np.array([row]))
            picture = Image.fromarray(image_HWC[..., 0] if image_HWC.shape[2] == 1 else image_HWC)
            picture.thumbnail((PIXELS, PIXELS))
            stream = BytesIO()
            picture.save(stream, "PNG", optimize=True)
            self._made[row] = f"data:image/png;base64,{b64encode(stream.getvalue()).decode()}"
        return self._made[row]
