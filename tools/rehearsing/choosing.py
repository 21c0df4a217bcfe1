"""The stages that are rehearsed: every dataset and backbone, and of every method one cell on each dataset.

Of several shots the largest is taken: it needs the most images and memory; with a heavy backbone the smallest, as a
CPU's memory is counted, not tried. A training from random weights is a kind of its own: batch norm learns in it.
"""

from collections.abc import Callable, Collection, Hashable, Iterable

from repro import paths
from tools.rehearsing.work import Key, Stage, Work


class Chosen:
    """Stages to rehearse, in the pipeline's order, and which of them stands for a stage."""

    def __init__(self, work: Work, heavy: Collection[str] = ()) -> None:
        """`heavy` are the datasets whose backbone is."""
        self._heavy = heavy
        self._stands_for: dict[Key, Key] = {}
        trainings = self._representatives(work.of("train"), _training_kind)
        bases = {stage.needs[0] for stage in work.of("evaluate") if stage.key[1] != paths.EXPERIMENT}
        self._representatives(work.of("evaluate"), _evaluation_kind, prefer=set(trainings) | _untrained(bases))
        for stage in work.stages.values():
            self._stands_for.setdefault(stage.key, stage.key)
        wanted = set(self._stands_for.values())
        wanted |= {need for key in wanted for need in work.stages[key].needs if key[0] == "evaluate"}
        self.stages = [stage for stage in work.stages.values() if stage.key in wanted]

    def stands_for(self, stage: Stage) -> Key:
        """The rehearsed stage that tells what this one will cost."""
        return self._stands_for[stage.key]

    def _representatives(
        self, stages: Iterable[Stage], kind: Callable[[Stage], Hashable], prefer: set[Key] | None = None
    ) -> list[Key]:
        groups: dict[Hashable, list[Stage]] = {}
        for stage in stages:
            groups.setdefault(kind(stage), []).append(stage)
        found = []
        for group in groups.values():
            ready = [stage for stage in group if prefer is None or stage.needs[0] in prefer] or group
            best = min(ready, key=self._preference)
            found.append(best.key)
            self._stands_for |= dict.fromkeys((stage.key for stage in group), best.key)
        return found

    def _preference(self, stage: Stage) -> tuple[bool, int, int]:
        shot = stage.settings.shot if stage.settings.dataset in self._heavy else -stage.settings.shot
        return stage.name == paths.EXPERIMENT, shot, len(stage.name)


def _training_kind(stage: Stage) -> Hashable:
    settings = stage.settings
    return stage.name == paths.EXPERIMENT, settings.dataset, settings.method, settings.pretrained


def _evaluation_kind(stage: Stage) -> Hashable:
    return stage.name == paths.EXPERIMENT, stage.settings.dataset, stage.settings.method


def _untrained(models: Iterable[Key]) -> set[Key]:
    return {key for key in models if key[0] == "pretrain"}
