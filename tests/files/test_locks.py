"""Locks on folders."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from repro.errors import BadInput
from repro.files import exclusive_folder, folder_in_turn, try_to_lock

HOLD = """
import sys, time
from repro.files import try_to_lock
lock = open(sys.argv[1], "w")
print(try_to_lock(lock), flush=True)
time.sleep(600)
"""


def test_a_folder_is_held_by_one_and_goes_when_it_is_empty(tmp_path: Path) -> None:
    with exclusive_folder(tmp_path / "held"):
        with pytest.raises(BadInput, match="in use by another process"), exclusive_folder(tmp_path / "held"):
            pass
    assert not (tmp_path / "held").exists()


def test_a_turn_is_waited_for(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    with folder_in_turn(tmp_path):
        assert not try_to_lock(handle)
    assert try_to_lock(handle)
    os.close(handle)


def test_a_lock_ends_with_a_killed_process(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    command = [sys.executable, "-c", HOLD, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder, file.open("w") as stream:
        assert holder.stdout and holder.stdout.readline() == "True\n"
        assert not try_to_lock(stream)
        holder.kill()
        holder.wait()
        assert try_to_lock(stream)
