"""One Ray for all tests of scheduling: it takes seconds to start."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def ray_address() -> Iterator[str]:
    """The address of a running cluster; the environment holds what is needed to join it."""
    command = [sys.executable, str(Path(__file__).with_name("head.py"))]
    with pytest.MonkeyPatch.context() as patch:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as head:
            assert head.stdout
            address, token = head.stdout.readline().split()
            patch.setenv("RAY_AUTH_MODE", "token")
            patch.setenv("RAY_AUTH_TOKEN", token)
            patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
            patch.delenv("OMP_NUM_THREADS", raising=False)
            yield address
        assert head.returncode == 0
