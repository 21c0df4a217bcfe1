"""Places: one user each, in the place's environment, and free again however the user ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from stages.launching import places
from tests.paths import ROOT

USER = """
import os, time
from stages.launching.places import place
print("waiting", flush=True)
with place():
    print(os.environ["WHO"], flush=True)
    time.sleep(600)
"""


def told(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


@contextmanager
def user() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", USER], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert told(process) == "waiting"
            yield process
        finally:
            process.kill()


@pytest.fixture
def two_places(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with places.offer_places([{"WHO": "first"}, {"WHO": "second"}]) as room:
        monkeypatch.setenv(places.FOLDER, room[places.FOLDER])
        monkeypatch.setenv("WHO", "")
        yield


@pytest.mark.usefixtures("two_places")
def test_a_killed_user_leaves_its_place_to_the_next() -> None:
    with places.place(), user() as second:
        assert os.environ["WHO"] == "first"
        assert told(second) == "second"
        with user() as waiting:
            time.sleep(1.0)
            assert waiting.poll() is None
            second.kill()
            assert told(waiting) == "second"


@pytest.mark.usefixtures("two_places")
def test_an_interrupt_ends_the_waiting_without_a_word() -> None:
    with places.place(), places.place(), user() as waiting:
        time.sleep(0.5)
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(60) == places.INTERRUPTED
        assert told(waiting) == ""


def test_without_an_offer_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(places.FOLDER, raising=False)
    with places.place():
        assert places.FOLDER not in os.environ
