"""The order of stages in dvc.lock. DVC appends what is new as it ends, and in parallel that is any order."""

import json
from pathlib import Path

from dvc.utils.serialize import load_yaml, modify_yaml

from repro.files import whole_file


class LockOrder:
    """Remembers in a file, over interrupted calls, which stages dvc.lock had before the first of them."""

    def __init__(self, memory: Path) -> None:
        self._memory = memory

    def remember(self, lock: Path) -> None:
        """Note what is in the lock, unless that was done before."""
        known = self._known()
        if str(lock) not in known:
            names = list(load_yaml(lock).get("stages", {})) if lock.exists() else []
            with whole_file(self._memory) as partial:
                partial.write_text(json.dumps(known | {str(lock): names}))

    def restore(self, plan: list[str]) -> None:
        """Put the stages that are new since in the order of the plan, behind those that were there."""
        place = {name: number for number, name in enumerate(plan)}
        for lock, before in self._known().items():
            found = list(load_yaml(lock)["stages"])
            new = [name for name in found if name not in before]
            wanted = [name for name in found if name in before] + sorted(new, key=lambda name: place.get(name, -1))
            if found != wanted:
                with modify_yaml(lock) as content:
                    for name in wanted:
                        content["stages"].move_to_end(name)

    def forget(self) -> None:
        """The lock is complete: what is new next time is new from now on."""
        self._memory.unlink(missing_ok=True)

    def _known(self) -> dict[str, list[str]]:
        try:
            found = json.loads(self._memory.read_text())
            return {str(lock): list(map(str, names)) for lock, names in found.items()}
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):  # none, or a damaged one
            return {}
