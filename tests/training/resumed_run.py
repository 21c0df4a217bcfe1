"""A training in a process of its own that kills itself: python -m tests.training.resumed_run KIND DATASET FOLDER STEP.

After STEP steps (0: never) the process gets SIGKILL. A run that reaches its end writes `final.safetensors`
and `history.json` into FOLDER.
"""

import json
import os
import signal
import sys
from pathlib import Path

import torch

from repro.data.dataset import open_dataset
from repro.models.weights import save_weights
from repro.training.loop import run
from tests.training.small import TRAININGS


def main(kind: str, dataset: Path, folder: Path, kill_after: int) -> None:
    torch.set_num_threads(1)
    training = TRAININGS[kind](open_dataset(dataset))
    for metrics in run(training, folder / "checkpoints", checkpoint_every=3):
        if metrics.step == kill_after:
            os.kill(os.getpid(), signal.SIGKILL)
    save_weights(training.learner.model, folder / "final.safetensors")
    (folder / "history.json").write_text(json.dumps(training.history))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
