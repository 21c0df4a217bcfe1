"""From params.yaml and paper/grid.yaml to what every stage is run with.

Narrower places win: values of all, then those of the method's file, of the method, of the dataset, of the grid's line.
"""

import json
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import asdict
from functools import cache, cached_property
from pathlib import Path
from typing import Any, get_args

import torch
from torch import nn

from repro import paths
from repro.errors import BadInput, one_line
from repro.methods.base import Pretraining as Role
from repro.methods.registry import method_class
from repro.models import create_backbone
from repro.models.pretrained import check_classifier
from repro.options import checked
from repro.preparation.preparing import check_source
from repro.report.needs import required_cells
from repro.report.rows import lacked
from repro.trained.building import check_method_options
from repro.training.episodic import MetaTraining
from repro.training.pretrain import Pretraining
from stages.settings.code import Code
from stages.settings.grid import AdaptedLine, Grid, Line, StartedLine
from stages.settings.kinds import (
    EpisodesSettings,
    EvaluateSettings,
    PaperSettings,
    PretrainSettings,
    Settings,
    SplitsSettings,
    SummarySettings,
    TrainSettings,
)
from stages.settings.params import Episodes, MethodParams, Named, Params, Way
from stages.settings.planned import STANDARD

CHANNELS = 3  # of images, while nothing is known of them
# What `timm.create_model` takes for itself: weights from a file or a server, and another kind of output.
OF_TIMM = (
    *("pretrained", "pretrained_cfg", "pretrained_cfg_overlay", "pretrained_strict", "checkpoint_path", "cache_dir"),
    *("in_chans", "num_classes", "global_pool", "features_only", "feature_cfg", "out_indices", "output_stride"),
    *("scriptable", "exportable", "no_jit"),
)
SHARED = {"shot", "classifiers"}  # of a pre-training, by all datasets
RANDOM = "random"  # instead of a role: the backbone at its initial weights
MOST_WEIGHTS = 10**10  # of a backbone; the largest of timm's have half of that
MANY_CLASSES = 10**5  # seen ones, while nothing is known of the data
NO_VALUES = torch.device("meta")  # where weights have shapes alone, and take neither time nor memory


@cache
def check_backbone(place: str, name: str, options_as_json: str) -> tuple[nn.Module, int]:
    """The backbone without memory, and its dimension.

    Raises BadInput where timm cannot build it, or would take its weights from elsewhere.
    """
    options = json.loads(options_as_json)
    if not_ours := [each for each in OF_TIMM if each in options]:
        message = f"{place}: {not_ours[0]} is no option of backbone {name}, expected how its layers are built"
        raise BadInput(f"{message}: its weights and its inputs and outputs are this pipeline's; remove it")
    for option, rate in options.items():
        if option.endswith("_rate") and rate is not None and not (isinstance(rate, int | float) and 0 <= rate < 1):
            raise BadInput(f"{place}: {option} of backbone {name} is {rate!r:.60}, expected a share below 1")
    try:
        with NO_VALUES:
            backbone, dim = create_backbone(name, CHANNELS, **options)
    except BadInput as error:
        raise BadInput(f"{place}: {error}") from error
    except Exception as error:  # every model has its own way to say what it does not take
        message = f"{place}: backbone {name} does not take the options {options}"
        raise BadInput(f"{message} ({type(error).__name__}: {one_line(error):.200}); correct them") from error
    if (weights := sum(each.numel() for each in backbone.parameters())) > MOST_WEIGHTS:
        message = f"{place}: backbone {name} has {weights:,} weights, expected at most {MOST_WEIGHTS:,}"
        raise BadInput(f"{message}; lower its options")
    return backbone, dim


@cache
def check_method(place: str, name: str, options_as_json: str, shot: int, backbone: nn.Module, dim: int) -> None:
    """Raise BadInput where the method cannot be built with its options, or a step of its training draws nothing."""
    options = json.loads(options_as_json)
    try:
        with NO_VALUES:
            spec = method_class(name)(backbone, dim, MANY_CLASSES, **options).batch_spec(shot)
    except BadInput as error:
        raise BadInput(f"{place}: {error}") from error
    except Exception as error:  # a method has its own way to say what it does not take
        if str(NO_VALUES) in str(error):  # it looks at its weights' values: only the stage can build it
            return
        message = f"{place} does not take the options {options}"
        raise BadInput(f"{message} ({type(error).__name__}: {one_line(error):.200}); correct them") from error
    if spec is not None and (min(spec.classes, spec.shot) < 1 or min(spec.queries, spec.free) < 0):
        message = (
            f"{place}: a step of {spec.classes} classes, {spec.shot} shots, {spec.queries} queries and {spec.free}"
        )
        raise BadInput(f"{message} free images: expected at least 1, 1, 0 and 0; correct the options")


class Resolver:
    """The settings of every stage of one checkout, replicates with the first seed.

    Raises BadInput, naming the place, where they do not fit.
    """

    def __init__(self, params: Params, grid: Grid, root: Path = Path()) -> None:
        self.params, self.grid = params, grid
        self.code = Code(root)

    def with_params(self, params: Params) -> "Resolver":
        """The same checkout with other parameters; its code is not read again."""
        other = copy(self)
        other.params = params
        return other

    def all(self) -> Iterator[tuple[str, str, Settings]]:
        """Stage, name and settings of everything that dvc.yaml runs."""
        self._require_own_names()
        for dataset in self.params.datasets:
            yield "splits", dataset, self.splits(dataset)
            yield "episodes", dataset, self.episodes_settings(dataset)
            for role in self.params.pretraining.classifiers:
                yield "pretrain", f"{dataset}-{role}", self.pretrain(dataset, role)
        for dataset in self.grid.random:
            yield "pretrain", f"{dataset}-{RANDOM}", self.pretrain(dataset, RANDOM)
        for cell, line in self.grid.lines().items():
            self._require_names(cell, line)
            if cell in self.grid.trained:
                yield "train", cell, self.train(cell, self.grid.trained[cell])
            yield "evaluate", cell, self.evaluate(cell, line, self._model(cell, line))
        yield "train", paths.EXPERIMENT, self.train(paths.EXPERIMENT, self._experiment)
        yield "evaluate", paths.EXPERIMENT, self._evaluate_experiment()
        yield "summary", paths.EXPERIMENT, self._summary()
        yield "paper", "paper", self.paper()

    # Each kind

    def splits(self, dataset: str) -> SplitsSettings:
        """Of preparing a dataset."""
        chosen = self.params.datasets[dataset]
        check_source(chosen.source, chosen.options)
        return SplitsSettings(
            dataset=dataset, source=chosen.source, size=chosen.size, options=chosen.options, **self._replicate("splits")
        )

    def episodes_settings(self, dataset: str) -> EpisodesSettings:
        """Of drawing its tasks."""
        return EpisodesSettings(dataset=dataset, episodes=self.episodes(dataset), **self._replicate("episodes"))

    def pretrain(self, dataset: str, role: str) -> PretrainSettings:
        """Of one backbone."""
        params, classifiers = self.params, self.params.pretraining.classifiers
        if dataset not in params.datasets:
            raise BadInput(
                f"{paths.GRID}: random: dataset is {dataset!r}, expected one of {', '.join(params.datasets)}"
            )
        classifier, backbone = classifiers[STANDARD if role == RANDOM else role], self.backbone(dataset)
        check_classifier(classifier.name, classifier.options)
        return PretrainSettings(
            name=f"{dataset}-{role}",
            dataset=dataset,
            backbone=Named(backbone.name, {**backbone.options, **classifier.backbone}),
            classifier=Named(classifier.name, classifier.options),
            random=role == RANDOM,
            pretraining=self.pretraining(dataset),
            way=params.measuring.selection.way,
            shot=params.pretraining.shot,
            precision=params.precision,
            threads=params.threads,
            **self._replicate("pretrain"),
        )

    def train(self, cell: str, line: StartedLine) -> TrainSettings:
        """Of the training of one cell."""
        return TrainSettings(
            cell=cell,
            dataset=line.dataset,
            method=line.method,
            shot=line.shot,
            pretrained=f"{line.dataset}-{line.pretrained}",
            options=self._options(cell, line),
            training=self.training(cell, line),
            selection=self.params.measuring.selection,
            precision=self.params.precision,
            threads=self.params.threads,
            **self._replicate("train", line.method),
        )

    def evaluate(self, cell: str, line: Line, model: Path) -> EvaluateSettings:
        """Of the evaluation of one cell."""
        params, ways = self.params, self._stored_ways(line.ways, line.dataset, cell)
        return EvaluateSettings(
            cell=cell,
            dataset=line.dataset,
            method=line.method,
            shot=line.shot,
            model=str(model),
            options=self._options(cell, line),
            way=ways[0],
            ways=ways,
            few_shot=self._stored_ways(params.measuring.few_shot, line.dataset, "measuring.few_shot"),
            detailed=self._stored_ways(params.measuring.detailed, line.dataset, "measuring.detailed"),
            seen=line.seen,
            overlap=line.overlap,
            limit=self._of_method(line.method).limit or None,
            selection=params.measuring.selection,
            benchmark=f"{params.benchmark.name}, {params.benchmark.scale}",
            threads=params.threads,
            **self._replicate("evaluate", line.method),
        )

    def paper(self) -> PaperSettings:
        """Of rendering the paper; `methods` are those whose cards it shows."""
        params = self.params
        for name in params.paper.rows:
            try:
                method_class(name)
            except BadInput as error:
                raise BadInput(f"paper.rows: {error}") from error
            if not lacked(name):
                message = f"paper.rows has {name}, expected methods that a table or figure lacks"
                raise BadInput(f"{message}; remove it, its rows are in all that take any")
        named = {line.method for line in self.grid.lines().values()} | set(params.paper.rows)
        methods = sorted(named | {need.cell.method for need in required_cells()})
        return PaperSettings(
            seeds=params.seeds,
            benchmark=params.benchmark,
            datasets=tuple(params.datasets),
            backbones={dataset: self.backbone(dataset).name for dataset in params.datasets},
            form=params.paper.form,
            rows=params.paper.rows,
            way=params.measuring.selection.way,
            query=params.episodes.query,
            stages={cell: self.grid.stage_of(cell) for cell in self.grid.lines()},
            methods=tuple(methods),
            **self._common("paper", *methods),
        )

    # What a dataset or a line has instead of the values of all

    def episodes(self, dataset: str) -> Episodes:
        """The stored tasks of a dataset."""
        merged = {**asdict(self.params.episodes), **self.params.datasets[dataset].episodes}
        episodes = checked(Episodes, merged, f"datasets.{dataset}.episodes")
        selection = self.params.measuring.selection
        if selection.tasks > episodes.calibration:
            message = f"measuring.selection.tasks is {selection.tasks}, {dataset} has {episodes.calibration} stored"
            raise BadInput(f"{message} validation tasks; lower it or raise episodes.calibration")
        if selection.way not in [entry.way for entry in episodes.test]:
            message = f"measuring.selection.way is {selection.way}, {dataset} has no stored tasks of that way"
            raise BadInput(f"{message}; add it to its episodes.test")
        return episodes

    def backbone(self, dataset: str) -> Named:
        """The backbone of a dataset."""
        own = self.params.datasets[dataset].backbone
        return checked(Named, own, f"datasets.{dataset}.backbone") if own else self.params.backbone

    def pretraining(self, dataset: str) -> Pretraining:
        """How its backbones are pre-trained."""
        common, given = asdict(self.params.pretraining), self.params.datasets[dataset].pretraining
        if shared := sorted(SHARED & given.keys()):
            message = f"datasets.{dataset}.pretraining has {shared[0]}, which all datasets share"
            raise BadInput(f"{message}; set it under pretraining, or remove it")
        own = {name: value for name, value in {**common, **given}.items() if name not in SHARED}
        return checked(Pretraining, own, f"datasets.{dataset}.pretraining")

    def training(self, cell: str, line: StartedLine) -> MetaTraining | None:
        """How a method is meta-trained for a cell; None where it has nothing to train."""
        own = method_class(line.method).default_training
        narrower = {
            **self._of_method(line.method).training,
            **self.params.datasets[line.dataset].training,
            **line.training,
        }
        if own is None:
            if line.training or self._of_method(line.method).training:
                raise BadInput(f"{cell}: training is given, but {line.method} has nothing to train; remove it")
            return None
        return checked(MetaTraining, {**self.params.training, **own, **narrower}, f"{cell}: training")

    def _options(self, cell: str, line: Line) -> dict[str, Any]:
        options = {**self._of_method(line.method).options, **line.options}
        place, as_json = f"{cell}: method {line.method}", json.dumps(options, sort_keys=True)
        check_method_options(line.method, options, place)
        role = STANDARD if (own := method_class(line.method).pretraining) == RANDOM else own
        check_method(place, line.method, as_json, line.shot, *self._built(line.dataset, role))
        return options

    def _built(self, dataset: str, role: str) -> tuple[nn.Module, int]:
        """The backbone of a dataset below the classifier of this role, checked, and its dimension."""
        named, classifiers = self.backbone(dataset), self.params.pretraining.classifiers
        place = f"datasets.{dataset}, pretraining.classifiers.{role}"
        below = classifiers[role].backbone if role in classifiers else {}
        return check_backbone(place, named.name, json.dumps({**named.options, **below}, sort_keys=True))

    def _of_method(self, method: str) -> MethodParams:
        return self.params.methods.get(method, MethodParams())

    # The experiment at the top of params.yaml

    @cached_property
    def _experiment(self) -> StartedLine:
        """It is one more line, on all stored tasks of its shot, so that measures can be seen against ways."""
        params = self.params
        where: dict[str, Any] = {"dataset": params.dataset, "method": params.method, "shot": params.shot}
        self._require_names("params.yaml", Line(**where, ways=(params.way,)))
        method = method_class(params.method)
        if (base := method.base_method) is not None:
            message = f"method is {params.method!r}, which adapts a trained {base} and has no training of its own"
            raise BadInput(f"{message}; vary {base} instead, or measure a line of `adapted` in {paths.GRID}")
        episodes = self.episodes(params.dataset)
        ways = tuple(entry.way for entry in episodes.test)
        own: dict[str, Any] = {"options": params.own.options, "training": params.own.training}
        line = StartedLine(**where, **own, ways=ways, seen=bool(episodes.seen), pretrained=method.pretraining)
        self._require_role(f"repro/methods/{params.method}.py: pretraining", line)
        return line

    @cached_property
    def _way(self) -> int:
        (way,) = self._stored_ways((self.params.way,), self.params.dataset, "params.yaml")
        return way

    def _summary(self) -> SummarySettings:
        return SummarySettings(seeds=self.params.seeds, cell=paths.EXPERIMENT, way=self._way, **self._common("summary"))

    def _evaluate_experiment(self) -> EvaluateSettings:
        settings = self.evaluate(paths.EXPERIMENT, self._experiment, paths.model(paths.EXPERIMENT))
        return EvaluateSettings(**{**vars(settings), "way": self._way})

    # Checks

    def _require_own_names(self) -> None:
        """Raise BadInput for a name that is unknown, missing, or another's: two would write the same files."""
        roles = self.params.pretraining.classifiers
        for role in get_args(Role):  # dvc.yaml has a stage for each
            if role not in roles:
                message = f"pretraining.classifiers are {', '.join(roles) or 'none'}, expected {role} among them"
                raise BadInput(f"{message}: methods start from it")
        if RANDOM in roles:
            raise BadInput(f"pretraining.classifiers has {RANDOM}, which is the backbone left untrained; rename it")
        backbones: dict[str, str] = {}
        for dataset in self.params.datasets:
            for role in (*roles, RANDOM):
                other = backbones.setdefault(f"{dataset}-{role}", dataset)
                if other != dataset:
                    message = f"{dataset}-{role} is a backbone of the datasets {other} and {dataset}"
                    raise BadInput(f"{message}, expected names that tell them apart; rename one")
        owners = {**dict.fromkeys(backbones, "a backbone"), paths.EXPERIMENT: f"the experiment in {paths.PARAMS}"}
        for cell in filter(owners.get, self.grid.lines()):
            raise BadInput(f"{paths.GRID}: {cell} is {owners[cell]}, expected another name for a cell; rename it")
        self._require_measured_ways()
        for name in self.params.methods:
            try:
                method_class(name)
            except BadInput as error:
                raise BadInput(f"methods.{name}: {error}") from error
        for dataset in self.params.datasets:
            for role in roles:
                self._built(dataset, role)

    def _require_measured_ways(self) -> None:
        """Raise BadInput for a way that is measured of every dataset, and stored for none."""
        stored = {entry.way for dataset in self.params.datasets for entry in self.episodes(dataset).test}
        for name, ways in (("few_shot", self.params.measuring.few_shot), ("detailed", self.params.measuring.detailed)):
            for way in ways:
                if way != "all" and way not in stored:
                    listed = ", ".join(map(str, sorted(stored)))
                    message = f"measuring.{name} has {way} ways, datasets have stored tasks of {listed}"
                    raise BadInput(f"{message}; choose among them, or add tasks to episodes.test")

    def _require_base(self, cell: str, line: AdaptedLine) -> None:
        """Raise BadInput unless a cell builds on a model that it can take: a trained cell's, or one that was imported.

        What was imported is no cell; its card is checked where it is read.
        """
        if line.base not in (*self.grid.lines(), paths.EXPERIMENT) and paths.model(line.base).is_dir():
            return
        base, wanted = self.grid.trained.get(line.base), method_class(line.method).base_method or line.method
        if base is None or (base.method, base.dataset) != (wanted, line.dataset):
            here = {name: each for name, each in self.grid.trained.items() if each.dataset == line.dataset}
            known = [name for name, each in here.items() if each.method == wanted]
            message = f"{cell}: base is {line.base!r}, {line.method} builds on a trained {wanted} on {line.dataset}"
            among = ", ".join(known) or "none yet, add one to `trained`"
            raise BadInput(f"{message}; expected one of: {among}, or a model that tools/import_weights put there")

    def _require_names(self, place: str, line: Line) -> None:
        """Raise BadInput for names that lead nowhere."""
        if line.dataset not in self.params.datasets:
            known = ", ".join(self.params.datasets)
            raise BadInput(f"{place}: dataset is {line.dataset!r}, expected one of {known}")
        method_class(line.method)
        if isinstance(line, StartedLine):
            self._require_role(f"{place}: pretrained", line)
            if base := method_class(line.method).base_method:
                raise BadInput(f"{place}: {line.method} adapts a trained {base}, expected it under `adapted`; move it")
            self.training(place, line)
        if place in self.grid.untrained and method_class(line.method).default_training is not None:
            message = f"{place}: {line.method} has a training, which a line of `untrained` leaves out"
            raise BadInput(f"{message}; put it under `trained`")
        if isinstance(line, AdaptedLine):
            self._require_base(place, line)
        shots = self.episodes(line.dataset).shots
        if line.shot not in shots:
            message = f"{place}: shot is {line.shot}, {line.dataset} has stored tasks of {list(shots)} shots"
            raise BadInput(f"{message}; add it to episodes.shots, or to those of datasets.{line.dataset}")

    def _require_role(self, place: str, line: StartedLine) -> None:
        """Raise BadInput where no backbone has the role that the line starts from."""
        roles = [*self.params.pretraining.classifiers, *([RANDOM] if line.dataset in self.grid.random else [])]
        if line.pretrained not in roles:
            raise BadInput(f"{place} is {line.pretrained!r}, expected one of {', '.join(roles)}")

    def _stored_ways(self, ways: tuple[Way, ...], dataset: str, place: str) -> tuple[int, ...]:
        """Numbers of ways, `all` as the most that there are; raises BadInput where no such tasks are stored."""
        stored = [entry.way for entry in self.episodes(dataset).test]
        numbers = [max(stored) if way == "all" else way for way in ways]
        wrong = [way for way in numbers if way not in stored]
        if wrong and not place.startswith("measuring"):
            message = f"{place}: way is {wrong[0]}, {dataset} has stored tasks of {', '.join(map(str, stored))} ways"
            raise BadInput(f"{message}; choose one of them, or add tasks to its episodes.test")
        return tuple(dict.fromkeys(way for way in numbers if way in stored))

    def _model(self, cell: str, line: Line) -> Path:
        if isinstance(line, AdaptedLine):
            return paths.model(line.base)
        if cell in self.grid.untrained:
            return paths.pretrained(f"{line.dataset}-{self.grid.untrained[cell].pretrained}")
        return paths.model(cell)

    def _common(self, stage: str, *methods: str) -> Mapping[str, Any]:
        bases = [base for name in methods if (base := method_class(name).base_method)]
        modules = [f"stages.{stage}", *(f"repro.methods.{name}" for name in (*methods, *bases))]
        return {"code": self.code.digest(*modules), "machine": self.params.machine}

    def _replicate(self, stage: str, *methods: str) -> Mapping[str, Any]:
        return {"seed": self.params.seeds[0], **self._common(stage, *methods)}
