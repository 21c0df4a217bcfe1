"""Run a stage's commands as long as the worker that asked for them lives. Standard library only.

leash.py LOG COMMANDS: COMMANDS is JSON, a list of argument lists, run one after the other until one fails; its exit
code is printed. Standard input is a pipe that the worker holds open. When the worker is gone, however it went, the pipe
ends: the command and all that it started get SIGTERM and, after some seconds, SIGKILL.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

GRACE_SECONDS = 10.0
TICK = 0.05
STOPPED = 128 + signal.SIGTERM


def main(log: str, commands: list[list[str]]) -> int:
    """Run the commands with their output appended to the log; give the first exit code that is not 0."""
    from repro.files import wait_to_lock

    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # a local Ray starts its processes with it blocked
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(STOPPED))
    with open(log, "ab", buffering=0) as stream:
        # Held by everything that writes to the log: the command of a lost worker ends before its successor begins.
        wait_to_lock(stream)
        for command in commands:
            code = STOPPED if _deserted(0) else _run(command, stream.fileno())
            if code != 0:
                return code
    return 0


def _run(command: list[str], output: int) -> int:
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        while process.poll() is None:
            if _deserted(TICK):
                return STOPPED
    finally:
        if process.returncode is None:
            _stop(process)
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def _deserted(seconds: float) -> bool:
    """Wait so long at most; tell whether the worker is gone. It never writes, so readable means the end."""
    return bool(select.select([0], [], [], seconds)[0])


def _stop(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < deadline:
            process.poll()  # a leader that nobody waits for would keep its group alive
            os.killpg(process.pid, 0)
            time.sleep(TICK)
        os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    if os.fork() == 0:  # no child of the worker's: Ray kills those with the worker, which would leave the command alone
        print(main(sys.argv[1], json.loads(sys.argv[2])), flush=True)
