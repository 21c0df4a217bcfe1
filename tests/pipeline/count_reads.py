"""Run a stage in this process: `count_reads.py FILE STAGE ARGUMENT …`; FILE then says how many bytes of any images.npy
it has read. A memory map counts as read to its end.
"""

import builtins
import io
import os
import runpy
import sys
from pathlib import Path
from typing import Any

counted = 0
really_open = io.open


class Counting(io.FileIO):
    """Every read of a file comes through here, buffered or not."""

    def readinto(self, buffer: Any) -> int:
        global counted  # noqa: PLW0603
        number = super().readinto(buffer)
        counted += number or 0
        return number

    def readall(self) -> bytes:
        global counted  # noqa: PLW0603
        content = super().readall()
        counted += len(content)
        return content

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            return self.readall()
        content = bytearray(size)
        return bytes(content[: self.readinto(content)])


def open_counting(file: Any, mode: str = "r", buffering: int = -1, *others: Any, **named: Any) -> Any:
    if not str(file).endswith("images.npy") or mode != "rb":
        return really_open(file, mode, buffering, *others, **named)
    raw = Counting(file)
    return raw if buffering == 0 else io.BufferedReader(raw)


def count_maps(event: str, arguments: tuple[Any, ...]) -> None:
    global counted  # noqa: PLW0603
    if event == "mmap.__new__" and arguments[0] >= 0:
        counted += arguments[1] if os.readlink(f"/proc/self/fd/{arguments[0]}").endswith("images.npy") else 0


if __name__ == "__main__":
    _, told, stage, *arguments = sys.argv
    sys.path.insert(0, os.getcwd())
    sys.argv = [stage, *arguments]
    io.open = builtins.open = open_counting
    sys.addaudithook(count_maps)
    try:
        runpy.run_module(f"stages.{stage}", run_name="__main__")
    finally:
        Path(told).write_text(str(counted))
