"""What is printed where standard output's encoding lacks a letter."""

import sys
from io import TextIOWrapper

ESCAPED = "backslashreplace"


def escape_what_is_lacking() -> None:
    """Print letters that standard output's encoding lacks as escapes, instead of failing.

    The process that stages are forked from does it before any of them: a child's standard output is made anew below an
    object that still takes it for what it was, and cannot be configured again.
    """
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors != ESCAPED:
        sys.stdout.reconfigure(errors=ESCAPED)
