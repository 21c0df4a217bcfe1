"""What a number format changes: the accuracy of trainings on validation tasks, beside the noise between seeds.

Every training of tools/tuning.yaml, with the settings and steps that params.yaml has for it, in float32 and in the
other format, for each seed of params.yaml. Both start from the same pre-trained backbone, which is compared too, as a
method has it that trains nothing. Evaluations are in float32, and so is all of a method whose backbone stays fixed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from scipy.special import stdtrit

from repro import paths
from repro.errors import BadInput
from repro.methods.registry import method_class
from repro.results.intervals import LEVEL
from repro.results.tuning import TrialOutcome
from stages.settings.planned import STANDARD
from stages.settings.resolving import Resolver
from tools.tuning.choices import Choices
from tools.tuning.trials import MetaTrial, Place, PreTrial, Trial, Trials, settings_of

FEWEST_SEEDS = 2
COLUMNS = {"HM": "hm", "calibrated HM": "cal_hm", "AUSUC": "ausuc"}


def table(resolver: Resolver, choices: Choices, trials: Trials, amp: str) -> Iterator[str]:
    """The measurements in Markdown: a row for each training, differences as mean ± half a 95 % interval over seeds."""
    seeds = resolver.params.seeds
    if len(seeds) < FEWEST_SEEDS:
        message = f"{paths.PARAMS} lists the seeds {list(seeds)}, expected at least {FEWEST_SEEDS}"
        raise BadInput(f"{message}: their spread is what a difference is compared with; add one there meanwhile")
    wanted = {
        name: [_in(trial, one) for trial in each for one in ("none", amp)]
        for name, each in _trainings(resolver, choices).items()
    }
    outcomes = iter(trials.outcomes([trial for each in wanted.values() for trial in each]))
    columns = [f"{measure}, {amp} − float32" for measure in COLUMNS]
    yield f"| training | AUSUC | between seeds | {' | '.join(columns)} |"
    yield f"|---|{'---:|' * (2 + len(columns))}"
    for name in wanted:
        yield Row(name, [(next(outcomes), next(outcomes)) for _ in seeds]).text()


def roles(choices: Choices) -> list[str]:
    """Of the pre-trained backbones that these trainings start from."""
    return list(dict.fromkeys([STANDARD, *(method_class(name).pretraining for name in choices.methods)]))


@dataclass(frozen=True)
class Row:
    """Of one training: what it came to in float32 and in the other format, seed by seed."""

    name: str
    pairs: Sequence[tuple[TrialOutcome, TrialOutcome]]

    def text(self) -> str:
        """The row in Markdown."""
        plain = [first.ausuc for first, _ in self.pairs]
        cells = [self.name, f"{fmean(plain):.2f}", f"{stdev(plain):.2f}", *map(self._difference, COLUMNS.values())]
        return f"| {' | '.join(cells)} |"

    def _difference(self, measure: str) -> str:
        differences = [getattr(second, measure) - getattr(first, measure) for first, second in self.pairs]
        error = stdev(differences) / len(differences) ** 0.5
        wide = float(stdtrit(len(differences) - 1, 1 - LEVEL / 2)) * error
        return f"{fmean(differences):+.2f} ± {wide:.2f}"


def _trainings(resolver: Resolver, choices: Choices) -> dict[str, list[Trial]]:
    """The trainings by their label, one for each seed."""
    params, pretraining = resolver.params, resolver.pretrain(choices.dataset, STANDARD)
    found: dict[str, list[Trial]] = {
        "pre-training": [
            PreTrial(replace(pretraining, seed=seed, threads=1), choices.pretraining) for seed in params.seeds
        ]
    }
    for name in choices.methods:
        place = Place(choices.dataset, name, choices.shot)
        found[method_class(name).card.label] = [
            MetaTrial(settings_of(resolver, place, params.methods[name], seed)) for seed in params.seeds
        ]
    return found


def _in(trial: Trial, amp: str) -> Trial:
    settings = replace(trial.settings, precision=replace(trial.settings.precision, amp=amp))
    return replace(trial, settings=settings)  # type: ignore[arg-type]
