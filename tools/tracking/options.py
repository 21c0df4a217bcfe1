"""What options of the tracking tools can be: a port, a folder of runs, an address."""

import argparse
from pathlib import Path

from tools.command_line import WHOLE

LARGEST_PORT = 65535


def port(text: str) -> int:
    """A number that can be a port."""
    if not (WHOLE.fullmatch(text) and 1 <= int(text[:12]) <= LARGEST_PORT):
        raise argparse.ArgumentTypeError(f"{text!r:.60} is no port, expected a number from 1 to {LARGEST_PORT}")
    return int(text)


def folder_of_runs(text: str) -> Path:
    """A folder that is there."""
    if "\0" in text or not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is no folder, expected the one that holds the folders of runs")
    return Path(text)


def address(text: str) -> str:
    """HOST or HOST:PORT as a browser sends it."""
    host, colon, number = text.rpartition(":") if text.rpartition(":")[2].isdecimal() else (text, "", "")
    plain = host.strip("[]").replace(":", "").replace(".", "").replace("-", "").replace("_", "")
    if not (plain.isascii() and plain.isalnum()):
        raise argparse.ArgumentTypeError(f"{text!r} is no address, expected HOST or HOST:PORT without http://")
    return f"{host}:{port(number)}".lower() if colon else host.lower()
