"""How long stages take: what they took last time, as fast as their kind goes this time."""

import json
from collections.abc import Iterable
from pathlib import Path

from repro.files import whole_file
from tools.scheduling.progress import Progress


class Durations:
    """Seconds of stages, kept in a file from call to call; they only tell how long a call may take."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            found = json.loads(file.read_text())
            self._last = {str(name): float(seconds) for name, seconds in found.items()}
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):  # damaged: it is only a memory
            self._last = {}

    def expected(self, stages: Iterable[Progress]) -> dict[str, float]:
        """Seconds of those stages for which something is known: of their own last time, or of their group in this."""
        stages = list(stages)
        found: dict[str, float] = {}
        for group in {stage.group for stage in stages}:
            ran = [stage for stage in stages if stage.group == group and stage.state == "ran"]
            before = sum(self._last.get(stage.name, 0.0) for stage in ran)
            pace = sum(stage.seconds for stage in ran if stage.name in self._last) / before if before else 1.0
            for stage in stages:
                if stage.group == group and stage.name in self._last:
                    found[stage.name] = pace * self._last[stage.name]
                elif stage.group == group and ran:
                    found[stage.name] = sum(each.seconds for each in ran) / len(ran)
        return found

    def keep(self, stages: Iterable[Progress]) -> None:
        """Note what ran in this call."""
        now = {stage.name: round(stage.seconds, 1) for stage in stages if stage.state == "ran"}
        if now:
            with whole_file(self._file) as partial:
                partial.write_text(json.dumps(self._last | now))
