"""Which trainings decide, and what they decide: a setting for each method, then the budget of its plateau."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Any

from repro import paths
from repro.errors import BadInput
from repro.methods.registry import method_class
from repro.results.tuning import Budget, ChosenSetting, PretrainingBudget, Rule, Rung, TrialOutcome, Tried, Tuning
from stages.settings.params import Options
from stages.settings.planned import STANDARD
from stages.settings.resolving import Resolver
from tools.tuning.choices import FILE, Choices
from tools.tuning.trials import MetaTrial, Place, PreTrial, Trial, settings_of

LEAST_HM = 2.0  # percent; guessing among 64 + 5 classes gives 1.4


@dataclass(frozen=True)
class Search:
    """`outcomes` measures trainings; whatever asks for them waits."""

    choices: Choices
    resolver: Resolver
    outcomes: Callable[[Iterable[Trial]], list[TrialOutcome]]

    def __post_init__(self) -> None:
        listed, wanted = list(self.resolver.params.seeds), self.choices.seeds
        if len(listed) < wanted:
            message = f"{paths.PARAMS} lists the seeds {listed}, expected at least {wanted} to judge a plateau"
            raise BadInput(f"{message}; add one there while tuning, or lower `seeds` in {FILE}")

    @property
    def seeds(self) -> tuple[int, ...]:
        return self.resolver.params.seeds[: self.choices.seeds]

    def begin(self, before: Tuning) -> Tuning:
        """What was chosen before, to be added to; raises BadInput where its trainings computed in another format."""
        amp = self.resolver.params.precision.amp
        if before != Tuning(amp=before.amp) and before.amp != amp:
            message = f"{paths.PARAMS}: precision.amp is {amp}, expected {before.amp} as in {paths.TUNED}"
            raise BadInput(f"{message}, or that benchmark removed from there: one format makes numbers comparable")
        return replace(before, amp=amp)

    def names(self, dataset: str, shot: int, asked: list[str]) -> list[str]:
        """The methods to be tuned there: those asked for and their kin, or all; raises BadInput for what is not there.

        Where settings are compared all can be tuned, elsewhere those that the grid trains.
        """
        self.require(dataset)
        found = list(self.choices.methods)
        if not self._compares(dataset, shot):
            lines = [
                line for line in self.resolver.grid.trained.values() if (line.dataset, line.shot) == (dataset, shot)
            ]
            found = [name for name in found if name in {line.method for line in lines}]
        wanted = [name for group in self.choices.groups(asked or found) for name in group]
        if not (names := [name for name in found if name in wanted]):
            asked_for = ", ".join(asked) or "anything"
            raise BadInput(f"{paths.GRID} does not train {asked_for} on {dataset} with {shot} shots; expected a line")
        return names

    def require(self, dataset: str) -> None:
        """Raise BadInput for a dataset that is not there."""
        if dataset not in self.resolver.params.datasets:
            raise BadInput(f"got --dataset {dataset}, expected one of {', '.join(self.resolver.params.datasets)}")

    def roles(self, names: list[str]) -> list[str]:
        """The roles of the pre-trained backbones that they start from."""
        return list(dict.fromkeys(method_class(name).pretraining for name in names))

    def tuned(self, before: Tuning, dataset: str, shot: int, names: list[str]) -> Tuning:
        """What `before` says, with settings of these methods compared where that is due, and their budgets there.

        Elsewhere the settings are those that were chosen before; raises BadInput where none was.
        """
        settings, compares = dict(before.settings), self._compares(dataset, shot)
        if missing := [name for name in names if name not in settings and not compares]:
            raise BadInput(f"no setting of {missing[0]} was chosen yet; run `tools/tune {missing[0]}` first")
        with ThreadPoolExecutor(len(names)) as threads:  # each waits for processes most of the time
            for found in threads.map(self.compare, self.choices.groups(names)) if compares else ():
                settings |= found
            budgets = list(threads.map(partial(self.climb, settings), [Place(dataset, name, shot) for name in names]))
        return before.with_chosen(settings, budgets)

    def _compares(self, dataset: str, shot: int) -> bool:
        return (dataset, shot) == (self.choices.dataset, self.choices.shot)

    def compare(self, group: tuple[str, ...]) -> dict[str, ChosenSetting]:
        """The setting with the largest validation HM for a group of methods, in their mean; the first of equals."""
        steps, seed = self.choices.steps[0], self.seeds[0]
        dataset, shot = self.choices.dataset, self.choices.shot
        settings = {name: self.choices.methods[name].complete() for name in group}
        trials = [
            self._trial(Place(dataset, name, shot), each.options, each.training, steps, seed)
            for name in group
            for each in settings[name]
        ]
        outcomes = iter(self.outcomes(trials))
        tried = {
            name: [
                Tried(options=each.options, training=each.training, outcome=next(outcomes)) for each in settings[name]
            ]
            for name in group
        }
        rules = {name: rule_of(name, tried[name]) for name in group}
        values = zip(*([getattr(each.outcome, rules[name]) for each in tried[name]] for name in group), strict=True)
        means = [fmean(each) for each in values]
        return {
            name: ChosenSetting(
                dataset=dataset,
                shot=shot,
                seed=seed,
                steps=steps,
                by=rules[name],
                together=group,
                tried=tuple(tried[name]),
                chosen=means.index(max(means)),
            )
            for name in group
        }

    def climb(self, settings: dict[str, ChosenSetting], place: Place) -> Budget:
        """Double the steps until that gains less than the plateau allows, or until there is no larger budget."""
        chosen = settings[place.method].setting
        rungs = self._rungs(
            self.choices.steps, lambda steps, seed: self._trial(place, chosen.options, chosen.training, steps, seed)
        )
        return Budget(**vars(place), options=chosen.options, training=chosen.training, **rungs)

    def pretrained(self, before: Tuning, dataset: str) -> Tuning:
        """What `before` says, with the budget of a dataset's pre-training."""
        settings, method = self.resolver.pretrain(dataset, STANDARD), self.choices.pretraining

        def trial(epochs: int, seed: int) -> PreTrial:
            longer = replace(settings.pretraining, epochs=epochs)
            return PreTrial(replace(settings, pretraining=longer, seed=seed, threads=1), method)

        rungs = self._rungs(self.choices.epochs, trial)
        return before.with_pretraining(PretrainingBudget(dataset=dataset, method=method, **rungs))

    def _rungs(self, ladder: tuple[int, ...], trial: Callable[[int, int], Trial]) -> dict[str, Any]:
        """Climb until a doubling gains less than the plateau allows; what `Climb` is made of."""
        rungs = list[Rung]()
        for steps in ladder:
            outcomes = self.outcomes([trial(steps, seed) for seed in self.seeds])
            rungs.append(Rung(steps=steps, outcomes=tuple(outcomes)))
            if len(rungs) > 1 and rungs[-1].ausuc - rungs[-2].ausuc < self.choices.plateau:
                break
        return {"plateau": self.choices.plateau, "seeds": self.seeds, "rungs": tuple(rungs)}

    def _trial(self, place: Place, options: Options, training: Options, steps: int, seed: int) -> MetaTrial:
        entry = self.choices.entry(options, training, steps)
        return MetaTrial(settings_of(self.resolver, place, entry, seed))


def rule_of(name: str, tried: Sequence[Tried]) -> Rule:
    """What chooses for a method: HM as in the paper, calibrated where that is next to nothing whatever the setting.

    A method that never names an unseen class, or hardly ever, has an HM that says nothing about how well it does.
    """
    says_nothing = max(each.outcome.hm for each in tried) < LEAST_HM
    return "cal_hm" if says_nothing or method_class(name).selected_calibrated else "hm"
