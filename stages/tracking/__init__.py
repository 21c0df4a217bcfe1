"""How a stage becomes a recorded run.

    from stages.tracking import Log, record

    def train(settings: TrainSettings, log: Log) -> dict[str, Any]: ...

    record(train, settings, stage="train", cell="mini-castle-1shot")

`runs.py` says what a run's folder holds; `mongo.py` copies such folders to a Mongo server.
"""

from stages.tracking.exits import bad_input_exits, signals_exit
from stages.tracking.progress import bar, counting
from stages.tracking.recording import Log, record
from stages.tracking.runs import RecordedRun, has_ended, of_seed, recorded_runs, run_folders, runs_folder

__all__ = [
    "Log",
    "RecordedRun",
    "bad_input_exits",
    "bar",
    "counting",
    "has_ended",
    "of_seed",
    "record",
    "recorded_runs",
    "run_folders",
    "runs_folder",
    "signals_exit",
]
