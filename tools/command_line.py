"""Command lines of the tools: one form of help, options written out and given once, one sentence for what is wrong."""

import argparse
import re
import shlex
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from repro.errors import BadInput

WHOLE = re.compile("0|[1-9][0-9]*")  # written in one way alone: 010 is 8 for some and 10 for others
MOST_AT_ONCE = 1024  # processes that one command may start side by side


class Parser(argparse.ArgumentParser):
    """Reads the command line of `tools/NAME`; what cannot be meant is BadInput."""

    def __init__(self, name: str, description: str | None, examples: str) -> None:
        super().__init__(
            f"tools/{name}",
            description=description,
            epilog=f"examples:\n{examples}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the command line; raises BadInput."""
        self._check(arguments)
        return self.parse_args(arguments)

    def _check(self, arguments: Sequence[str]) -> None:
        for argument in arguments:
            if any("\ud800" <= sign <= "\udfff" for sign in argument):  # how Python shows undecodable bytes
                self.error(f"{argument!r} is not in UTF-8; rename the file or folder")
            if "\0" in argument:
                self.error(f"{argument!r} holds a zero byte, expected text")
            if not argument or (argument.startswith("--") and argument.endswith("=")):
                self.error(f"{argument!r} gives no value, expected one; leave it out for the default")
        names = [argument.partition("=")[0] for argument in arguments if argument.startswith("--")]
        if twice := sorted({name for name in names if names.count(name) > 1 and name != "--"}):
            self.error(f"{twice[0]} is given {names.count(twice[0])} times, expected once")

    def require_alone(self, given: argparse.Namespace, option: str, *beside: str) -> None:
        """Raise BadInput where something is given that means nothing with `option`; what is in `beside` does."""
        for action in self._actions:
            named = action.option_strings[-1] if action.option_strings else action.metavar or action.dest.upper()
            kept = named in (option, "--help", *beside)
            if not kept and getattr(given, action.dest) not in (action.default, None, []):
                self.error(f"{option} was given with {named}, expected {' or '.join(beside) or 'nothing'} beside it")

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message.removeprefix('argument ')}; `{self.prog} --help` explains the options")


def at_least(smallest: int, largest: int = 10**9) -> Callable[[str], int]:
    """A reader of whole numbers that are not below `smallest`, nor absurd."""

    def read(text: str) -> int:
        if not (WHOLE.fullmatch(text) and smallest <= int(text[:12]) <= largest):
            raise argparse.ArgumentTypeError(f"{text!r:.60} is no number from {smallest} to {largest:,}")
        return int(text)

    return read


def words(text: str) -> list[str]:
    """A command as a shell would split it."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r:.60} is no command ({error}), expected balanced quotes") from error


def new_file(ending: str) -> Callable[[str], Path]:
    """A file to write, in place of an older one, named from where the user stands; no folder, device or link.

    Its ending keeps it from replacing a file of another kind: what a tool reads, say.
    """

    def convert(text: str) -> Path:
        file = from_here(text)
        if (file.is_symlink() or file.exists()) and not stat.S_ISREG(file.lstat().st_mode):
            kind = "a folder" if file.is_dir() else "no plain file"
            raise argparse.ArgumentTypeError(f"{text!r:.200} is {kind}, expected the name of a file to write")
        if file.suffix != ending:
            raise argparse.ArgumentTypeError(f"{text!r:.200} is no {ending} file, expected a name that ends so")
        return file

    return convert


def from_here(text: str) -> Path:
    """A file or folder, named from where the user stands; a tool may go elsewhere."""
    return Path(text).absolute()
