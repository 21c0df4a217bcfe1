"""Damage that leaves no trace but the content, and the command that a doctor names against it."""

import os
from pathlib import Path


def rot(file: Path) -> None:
    """Change one bit and nothing else: size, times and modes stay."""
    before = file.stat()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.chmod(0o644)
    file.write_bytes(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    file.chmod(before.st_mode)


def command_in(line: str) -> str:
    """The command at the end of a problem's line."""
    return line.rpartition("run `")[2].rstrip("`")
