"""Standard streams that are closed when a command begins."""

import os
import sys


def fill_closed_streams() -> None:
    """Open /dev/null in place of standard streams that are closed: another file would get their number.

    A child process would then write what it prints into that file.
    """
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(opened, True)
    os.close(opened)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))
