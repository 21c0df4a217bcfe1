"""Room for replicates: a folder with a file per place, which whoever computes there holds locked.

`tools/repro` makes one folder for all stages that it runs at once, and a stage with several seeds one for itself. Both
hand it on by REPRO_PLACES. A lock ends with the process that holds it, so a killed one leaves its place.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

from repro.errors import BadInput
from repro.files import try_to_lock
from stages.launching.ranks import TRAININGS

if TYPE_CHECKING:  # a stage's command reads it only where it makes room
    from stages.settings.machine import Machine

FOLDER = "REPRO_PLACES"
GPUS = "CUDA_VISIBLE_DEVICES"
TICK = 0.05
INTERRUPTED = 128 + signal.SIGINT
Place = dict[str, str]  # what its user's environment has besides ours


def places_for(here: "Machine", threads: int, stage: str = TRAININGS[-1]) -> list[Place]:
    """Room for a replicate of the stage each; what has room for a training has room for any stage."""
    ranks = here.processes if stage in TRAININGS else 1
    if stage in TRAININGS and here.nodes > 1:  # the other nodes follow one after the other
        return [{}]
    gpus = [] if here.device == "cpu" else visible_gpus()
    if not gpus:
        return [{}] * (here.replicates or max(1, len(os.sched_getaffinity(0)) // (threads * ranks)))
    shares = [gpus[first : first + ranks] for first in range(0, max(1, len(gpus) - ranks + 1), ranks)]
    return [{GPUS: ",".join(share)} for share in islice(cycle(shares), here.replicates or len(shares))]


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA names them."""
    if (given := os.environ.get(GPUS)) is not None:
        return [name for name in given.split(",") if name]
    if not shutil.which("nvidia-smi"):
        return []
    query = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    listed = subprocess.run(query, capture_output=True, text=True, check=False)
    return listed.stdout.split() if listed.returncode == 0 else []


@contextmanager
def offer_places(places: Sequence[Place]) -> Iterator[dict[str, str]]:
    """Offer these places while the block runs; give the environment in which processes find them."""
    with tempfile.TemporaryDirectory(prefix="places-") as folder:
        for number, place in enumerate(places):
            Path(folder, str(number)).write_text(json.dumps(place))
        yield {FOLDER: folder}


@contextmanager
def place() -> Iterator[None]:
    """Wait for a place, and hold it while the block runs, in its environment; where none are offered, just go on."""
    files = offered()
    if not files:
        yield
        return
    try:
        held = _first_free(files)
    except KeyboardInterrupt:  # nothing has begun
        sys.exit(INTERRUPTED)
    with held:
        os.environ.update(json.load(held))
        yield


def offered() -> list[Path]:
    """The files of the places; none where their folder has gone. Raises BadInput where REPRO_PLACES leads elsewhere."""
    folder = Path(os.environ.get(FOLDER) or os.devnull)
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    if not all(file.name.isdecimal() and file.is_file() for file in files):
        raise BadInput(f"{FOLDER} is {str(folder)!r:.200}, expected the folder that `tools/repro` made; unset it")
    return files


def _first_free(files: Sequence[Path]) -> IO[str]:
    """Wait for a file that nobody has locked; give it open, locked by us."""
    while True:
        for file in files:
            stream = file.open()
            if try_to_lock(stream):
                return stream
            stream.close()
        time.sleep(TICK)
