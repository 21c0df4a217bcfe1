"""What a stage prints, kept as a reader would have seen it: progress bars in their last state, no control codes."""

import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

# Control Sequence Introducer and Operating System Command sequences (ECMA-48), each in its form of one character too,
# then single-character escapes.
CONTROL_CODES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\x1b[@-Z\\-_]"
)
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def as_seen(text: str) -> str:
    """Drop control codes and what a carriage return overwrote; applying it again changes nothing."""
    lines = UNPRINTABLE.sub("", CONTROL_CODES.sub("", text)).split("\n")
    return "\n".join(_last_state(line) for line in lines)


def _last_state(line: str) -> str:
    """The last non-blank text between carriage returns: the final state of a progress bar."""
    if "\r" not in line:
        return line
    states = [state for state in line.split("\r") if state.strip()]
    return states[-1] if states else ""


class Capture:
    """Everything written to standard output and error in a block of `output_capture`, also by threads."""

    def __init__(self) -> None:
        self._lines: list[str] = []  # whole, as a reader has seen them
        self._rest = ""  # the line that is still being written
        self._lock = threading.Lock()

    def write(self, data: str) -> None:
        with self._lock:
            whole, newline, rest = (self._rest + data).rpartition("\n")
            if newline:
                self._lines.append(as_seen(whole) + newline)
            # A bar redraws one line many times: only its last state is worth the memory.
            self._rest = rest if rest.count("\r") < 2 else "\r" + rest.rpartition("\r")[2]

    def text(self) -> str:
        """All that was printed so far, as seen."""
        with self._lock:
            self._lines = ["".join(self._lines)]
            return self._lines[0] + as_seen(self._rest)


class _Tee:
    """A text stream that writes through to the real one and to a capture."""

    def __init__(self, stream: TextIO, capture: Capture) -> None:
        self._stream = stream
        self._capture = capture

    def write(self, text: str) -> int:
        self._capture.write(text)
        with broken_pipe_ignored(self._stream):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with broken_pipe_ignored(self._stream):
            self._stream.flush()

    def writelines(self, lines: Iterable[str]) -> None:
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)  # isatty, fileno, encoding, buffer: the real stream's


@contextmanager
def output_capture() -> Iterator[Capture]:
    """Copy standard output and error into a capture while the block runs."""
    capture, streams = Capture(), (sys.stdout, sys.stderr)
    sys.stdout, sys.stderr = (cast(TextIO, _Tee(stream, capture)) for stream in streams)
    try:
        yield capture
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.stdout, sys.stderr = streams


@contextmanager
def broken_pipe_ignored(stream: TextIO) -> Iterator[None]:
    """Where the reader of a pipe has ended, drop what the stream writes from now on: the work is still wanted."""
    try:
        yield
    except BrokenPipeError:
        write_to_null(stream)


def write_to_null(stream: TextIO) -> None:
    """Let an open stream write to /dev/null, also what it has buffered."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
