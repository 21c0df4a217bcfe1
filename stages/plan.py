"""`python -m stages plan`: check params.yaml and paper/grid.yaml, and write what every stage is run with.

All other stages depend on their file of it, so a change re-runs the stages that it concerns and no others, and nothing
runs before everything has been checked.
"""

from dataclasses import dataclass

from repro import paths
from stages.settings.files import write_all
from stages.tracking import Log, record


@dataclass(frozen=True)
class PlanSettings:
    """It has none: it reads params.yaml and paper/grid.yaml whole."""


def plan(settings: PlanSettings, log: Log) -> dict[str, int]:
    """Write settings/ anew."""
    stages = write_all(paths.SETTINGS)
    print(f"{stages} stages planned")
    return {"stages": stages}


if __name__ == "__main__":
    record(plan, PlanSettings(), stage="plan", cell="all")
