"""The replicates of a stage: one process `python -m stages STAGE NAME --seed N` for each seed, side by side.

A replicate that is whole and would come out the same is left as it is, so a stage that was killed goes on where it was,
and a seed that is added to the list computes only itself. One that fails or is killed does not stop the others.
Each waits for a place of its own (`places.py`): those of the call of `tools/repro` that runs the stage, or the stage's.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from types import FrameType
from typing import IO

from repro.files import discard
from stages.launching import places
from stages.launching.ranks import LAUNCHER
from stages.origins import OUTPUTS, is_made
from stages.settings.machine import machine
from stages.settings.planned import Asked, planned, seeds_of

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def to_compute(ask: Asked) -> list[int]:
    """The seeds whose replicates are not there as they should be; what lies there stays until they are made.

    Raises BadInput.
    """
    values = planned(ask.stage, ask.name)
    seeds = seeds_of(ask, values)
    missing = [seed for seed in seeds if not is_made(ask.stage, ask.name, values, seed)]
    if whole := [str(seed) for seed in seeds if seed not in missing]:
        print(f"{ask.stage} {ask.name}: seed {', '.join(whole)} is there and whole")
    return missing


def drop_unlisted(ask: Asked) -> None:
    """After success for all seeds: folders of seeds that are no longer listed go."""
    listed = {str(seed) for seed in planned(ask.stage, ask.name)["seeds"]}
    for folder in OUTPUTS[ask.stage](ask.name, 0).values():
        for each in list(folder.parent.iterdir()):
            if each.name.lstrip(".").split(".")[0] not in listed:
                discard(each)


def side_by_side(ask: Asked, seeds: Sequence[int]) -> int:
    """Compute these replicates, a process each; give the first exit code that is not 0."""
    with _room(ask) as room:
        children = Children(room)
        before = {number: signal.getsignal(number) for number in FORWARDED}
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, children.stop)
        try:
            with ThreadPoolExecutor(len(seeds)) as pool:
                ended = pool.map(children.run, (replace(ask, seed=seed) for seed in seeds))
                codes = dict(zip(seeds, ended, strict=True))
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    failed = {seed: code for seed, code in codes.items() if code}
    for seed, code in failed.items():
        print(f"seed {seed}: ended with exit code {code}; the same command goes on with it", file=sys.stderr)
    return next(iter(failed.values()), 0)


def _room(ask: Asked) -> AbstractContextManager[dict[str, str]]:
    """The environment that leads to places: to those that the call shares with other stages, or to own ones."""
    if places.FOLDER in os.environ:
        return nullcontext({})
    threads = planned(ask.stage, ask.name).get("threads", 1)
    return places.offer_places(places.places_for(machine(), threads, ask.stage))


class Children:
    """The processes of the replicates; each waits for a place itself, and none begins after a signal to stop."""

    def __init__(self, room: dict[str, str]) -> None:
        self.room = room
        self.running: set[subprocess.Popen[str]] = set()
        self.stopped = 0
        self.lock = threading.RLock()

    def run(self, ask: Asked) -> int:
        """Compute one replicate to its end, its lines marked with its seed; give its exit code."""
        with self.lock:
            if self.stopped:
                return 128 + self.stopped
            child = subprocess.Popen(
                [sys.executable, "-m", "stages", *ask.words],
                env={**os.environ, **self.room, LAUNCHER: str(os.getpid())},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                process_group=0,  # an interrupt at the terminal reaches it through us, once
            )
            self.running.add(child)
        output = threading.Thread(target=_pass_on, args=(child.stdout, sys.stdout, ask))
        output.start()
        _pass_on(child.stderr, sys.stderr, ask)
        output.join()
        code = child.wait()
        with self.lock:
            self.running.discard(child)
        return code if code >= 0 else 128 - code

    def stop(self, number: int, _frame: FrameType | None) -> None:
        """Pass a signal on to all of them."""
        with self.lock:
            self.stopped = number
            for child in self.running:
                with suppress(ProcessLookupError):
                    child.send_signal(number)


def _pass_on(source: IO[str] | None, target: IO[str], ask: Asked) -> None:
    for line in source or ():
        target.write(f"seed {ask.seed}: {line if line.endswith(chr(10)) else line + chr(10)}")
        target.flush()
