"""From short stages to the time and disk of the full ones: what grows with steps, images or tasks is scaled by them.

A part that does not grow (starting, loading, closing) is taken as it was measured.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from repro.data.episodes import BLOCK
from repro.methods.registry import method_class
from tools.benchmarks.costs import batch_of, images_of
from tools.rehearsing import sizes
from tools.rehearsing.choosing import Chosen
from tools.rehearsing.measuring import WALL, Measured
from tools.rehearsing.sizes import DatasetSize
from tools.rehearsing.work import Key, Stage, Work
from tools.task_lists import all_specs


@dataclass(frozen=True)
class Pace:
    """A training's parts in seconds: `before` its steps, a step, a validation, a checkpoint, what comes `after`."""

    before: float
    warming: float
    step: float
    validation: float
    checkpoint: float
    after: float


@dataclass(frozen=True)
class Rehearsed:
    """What was measured, by stage and name, with the settings that were run; sizes of all datasets and samples."""

    measured: Mapping[Key, Measured]
    settings: Mapping[Key, Any]
    samples: Mapping[str, DatasetSize]
    full: Mapping[str, DatasetSize]
    bytes: Mapping[Key, int]
    start: float = 0.0  # seconds until a stage's command has begun
    most_embedded: Mapping[str, int] = field(
        default_factory=dict
    )  # images at once, where it was not all of the sample's

    def embedded(self, dataset: str, images: float) -> float:
        """How many of this number of images the sample computed."""
        return min(images, self.most_embedded.get(dataset, images))


class Predictor:
    """Seconds and bytes of full stages; None where the stage that tells did not work."""

    def __init__(self, work: Work, chosen: Chosen, rehearsed: Rehearsed, clock: int = WALL) -> None:
        self.work, self.chosen, self.rehearsed, self.clock = work, chosen, rehearsed, clock

    def seconds(self, stage: Stage) -> float | None:
        """How long one replicate of it takes."""
        timed = self.rehearsed.measured.get(self.chosen.stands_for(stage))
        if timed is None or not timed.works:
            return None
        predict = getattr(self, f"_{stage.kind}", self._as_measured)
        return self.rehearsed.start + float(predict(stage, timed))

    def bytes(self, stage: Stage) -> int:
        """How large the outputs of one replicate are."""
        key, settings = self.chosen.stands_for(stage), stage.settings
        measured = self.rehearsed.bytes.get(key, 0)
        match stage.kind:
            case "splits":
                return self.rehearsed.full[settings.dataset].packed
            case "episodes":
                return sizes.task_bytes(settings.episodes)
            case "pretrain" | "train":
                full, sample = self.rehearsed.full[settings.dataset], self.rehearsed.samples.get(settings.dataset)
                weights, dim = model_size(self.work, settings.dataset)
                grown = sizes.FLOAT * dim * (full.stored_rows - (sample.stored_rows if sample else 0))
                return measured + grown if measured else sizes.model_bytes(weights, dim, full)
            case "evaluate":
                return sizes.record_bytes(sum(number for _, _, number in self._lists(settings, settings.limit)))
        return measured

    # Each kind

    def _as_measured(self, stage: Stage, timed: Measured) -> float:
        return timed.end[self.clock]

    def _splits(self, stage: Stage, timed: Measured) -> float:
        """Listing, or choosing classes, is done in full already; decoding and drawing grow with the images."""
        name = stage.settings.dataset
        grows = self.rehearsed.full[name].total / self.rehearsed.samples[name].total
        return timed.end[self.clock] + self.packing(timed) * (grows - 1)

    def packing(self, timed: Measured) -> float:
        """Seconds that a sample's images took to be decoded or drawn."""
        bar = timed.bar
        listed = [moment for moment, number in bar.ticks if number == 0]
        return bar.ticks[-1][0][self.clock] - (listed or [bar.opened])[-1][self.clock]

    def _episodes(self, stage: Stage, timed: Measured) -> float:
        """Each list grows with its blocks of tasks."""
        size, short = self.rehearsed.full[stage.settings.dataset], self.rehearsed.settings[timed.stage, timed.name]
        whole, less = (all_specs(each.episodes, 1, size.seen) for each in (stage.settings, short))
        lists = zip(timed.bar.spans(self.clock), whole, less, strict=True)
        return timed.end[self.clock] + sum(span * (_blocks(one) / _blocks(few) - 1) for span, one, few in lists)

    def _pretrain(self, stage: Stage, timed: Measured) -> float:
        settings = stage.settings
        full, sample = self.rehearsed.full[settings.dataset], self.rehearsed.samples[settings.dataset]
        rows = full.stored_rows / self.rehearsed.embedded(settings.dataset, sample.stored_rows)
        if settings.random:
            return timed.end[self.clock] * rows
        pace, epochs = self._pace(timed), settings.pretraining.epochs
        episodes = self.work.resolver.episodes(settings.dataset)
        drawn = episodes.calibration * settings.way * (settings.shot + episodes.query)
        validated = self.rehearsed.embedded(settings.dataset, sizes.drawn_images(drawn, sample.images["val"]))
        grown = sizes.drawn_images(drawn, full.images["val"]) / validated
        steps = epochs * (full.images["train"] // settings.pretraining.batch)
        pace = replace(pace, step=pace.step * settings.pretraining.batch / timed.facts["images"])
        return self._trained(settings, pace, steps, epochs, grown, rows, warming=pace.warming)

    def _train(self, stage: Stage, timed: Measured) -> float:
        settings, name = stage.settings, stage.settings.dataset
        full, sample = self.rehearsed.full[name], self.rehearsed.samples[name]
        rows = full.stored_rows / self.rehearsed.embedded(name, sample.stored_rows)
        if settings.training is None:
            return timed.end[self.clock] * rows
        pace = self._pace(timed)
        remembered = method_class(settings.method).remembers
        embedded = [one.images["val"] + one.images["seen_val"] + one.exemplars(remembered) for one in (full, sample)]
        spec, learns = batch_of(settings, full.seen)
        measured_images = timed.facts["images"]
        step = pace.step * (images_of(spec) / measured_images if learns else 1.0)
        trained_on = self.rehearsed.embedded(name, sample.images["train"])
        warming = pace.warming * (1.0 if learns else full.images["train"] / trained_on)
        steps, validations = self.steps(stage)
        pace = replace(pace, step=step)
        validated = embedded[0] / self.rehearsed.embedded(name, embedded[1])
        return self._trained(settings, pace, steps, validations, validated, rows, warming=warming)

    def _trained(
        self, settings: Any, pace: Pace, steps: int, validations: int, validated: float, rows: float, *, warming: float
    ) -> float:
        """A validation comes before the first step too."""
        checkpoints = steps // settings.machine.checkpoint_every
        trained = steps * pace.step + checkpoints * pace.checkpoint
        return pace.before + warming + trained + (1 + validations) * pace.validation * validated + pace.after * rows

    def _evaluate(self, stage: Stage, timed: Measured) -> float:
        settings, short = stage.settings, self.rehearsed.settings[timed.stage, timed.name]
        rates, extra = self._rates(timed, short)
        grid = len(method_class(settings.method).tuning_grid)
        before = timed.bar.opened[self.clock]
        if grid > 1:
            usual = self._usual_opening()
            before = usual + max(0.0, before - usual) * settings.selection.tasks / short.selection.tasks
        # What was rehearsed may have no overlap, which takes as long as a joint list.
        joint = {("overlap", way): rates["gfsl", way] for way in settings.ways}
        lists = self._lists(settings, settings.limit)
        measured = sum(number * {**joint, **rates}[kind, way] for kind, way, number in lists)
        return before + extra + measured + timed.end[self.clock] - timed.bar.closed[self.clock]

    # Parts

    def steps(self, stage: Stage) -> tuple[int, int]:
        """Steps and validations of a full training."""
        settings = stage.settings
        size = self.rehearsed.full[settings.dataset]
        if stage.kind == "pretrain":
            epochs = 0 if settings.random else settings.pretraining.epochs
            return epochs * (size.images["train"] // settings.pretraining.batch), epochs
        training = settings.training
        if training is None:
            return 0, 0
        start = self.work.stages["pretrain", settings.pretrained].settings
        if start.random:
            more = start.pretraining.epochs * (size.images["train"] // start.pretraining.batch)
            training = training.from_random_weights(more, start.pretraining)
        return training.steps, -(-training.steps // training.validate_every)

    def _pace(self, timed: Measured) -> Pace:
        """Before the first step comes a validation, after every even one a checkpoint, after the last a validation."""
        bar = timed.bar
        moments = [(moment[self.clock], number) for moment, number in bar.ticks if number > 0]
        spans = [after[0] - before[0] for before, after in zip(moments, moments[1:], strict=False)]
        inner = spans[:-1] or spans
        saved = [span for span, (_, number) in zip(inner, moments[1:], strict=False) if number % 2 == 0]
        plain = [span for span, (_, number) in zip(inner, moments[1:], strict=False) if number % 2]
        step = median(plain or saved)
        checkpoint = max(0.0, median(saved) - step) if saved and plain else 0.0
        validation = max(0.0, spans[-1] - step)
        first = moments[0][0] - bar.opened[self.clock]
        warming = max(0.0, first - step - validation)
        after = timed.end[self.clock] - moments[-1][0]
        return Pace(bar.opened[self.clock], warming, step, validation, checkpoint, after)

    def pace(self, timed: Measured) -> Pace | None:
        """Of a training that was rehearsed."""
        return self._pace(timed) if timed.works and timed.bars and timed.facts.get("steps") else None

    def _lists(self, settings: Any, limit: int | None) -> Iterator[tuple[str, int, int]]:
        """Kind, ways and tasks of every list, in the order of an evaluation."""
        episodes = self.work.resolver.episodes(settings.dataset)
        stored = {entry.way: entry.tasks for entry in episodes.test}

        def capped(number: int) -> int:
            return min(number, limit or number)

        for way in settings.ways:
            yield "val", way, capped(episodes.calibration)
            yield "gfsl", way, capped(stored[way])
            if way in settings.few_shot:
                yield "fsl", way, capped(stored[way])
        for _ in settings.overlap:
            yield "overlap", settings.ways[0], capped(stored[settings.ways[0]])
        if settings.seen:
            yield "seen", 0, capped(episodes.seen)

    def _rates(self, timed: Measured, short: Any) -> tuple[dict[tuple[str, int], float], float]:
        """Seconds per task of each list; and what came before the first list, which counts once."""
        at = {number: moment[self.clock] for moment, number in timed.bar.ticks}
        rates: dict[tuple[str, int], float] = {}
        done, before = 0, timed.bar.opened[self.clock]
        for kind, way, number in self._lists(short, short.limit):
            done += number
            rates[kind, way] = (at[done] - before) / number
            before = at[done]
        first = short.ways[0]
        usual = min(rates["val", first], rates["gfsl", first])
        tasks = min(short.limit, self.work.resolver.episodes(short.dataset).calibration)
        extra = (rates["val", first] - usual) * tasks
        rates["val", first] = usual
        return rates, extra

    def rates(self, timed: Measured) -> dict[tuple[str, int], float]:
        """Seconds per task of each list of an evaluation that was rehearsed."""
        return self._rates(timed, self.rehearsed.settings[timed.stage, timed.name])[0]

    def _usual_opening(self) -> float:
        """Seconds before an evaluation that has nothing to choose begins to score."""
        found = [
            timed.bar.opened[self.clock]
            for (kind, _), timed in self.rehearsed.measured.items()
            if kind == "evaluate" and timed.works
        ]
        return min(found)


def model_size(work: Work, dataset: str) -> tuple[int, int]:
    """Weights and features of a dataset's backbone."""
    chosen = work.params.datasets[dataset]
    return sizes.backbone_size(work.resolver.backbone(dataset), 1 if sizes.is_drawn(chosen.source) else 3)


def _blocks(spec: Any) -> int:
    return int(-(-spec.tasks // BLOCK))


def folder_bytes(folder: Path) -> int:
    """All files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
