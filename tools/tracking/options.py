"""Command lines of the tracking tools: one form of help, and one sentence for what cannot be meant."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from repro.errors import BadInput

LARGEST_PORT = 65535


class Parser(argparse.ArgumentParser):
    """Options are written out and given once; what is wrong is BadInput."""

    def __init__(self, prog: str, description: str | None, epilog: str) -> None:
        form = argparse.RawDescriptionHelpFormatter
        super().__init__(prog, description=description, epilog=epilog, formatter_class=form, allow_abbrev=False)

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the command line; raises BadInput."""
        names = [argument.partition("=")[0] for argument in arguments if argument.startswith("--")]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            self.error(f"{twice[0]} is given {names.count(twice[0])} times, expected once")
        return self.parse_args(arguments)

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message.removeprefix('argument ')}; `{self.prog} --help` explains the options")


def port(text: str) -> int:
    """A number that can be a port."""
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= LARGEST_PORT):
        raise argparse.ArgumentTypeError(f"{text!r} is no port, expected a number from 1 to {LARGEST_PORT}")
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
