"""Progress bars: on a terminal only, so that logs and records stay clean."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm


@contextmanager
def bar(title: str, total: int, unit: str) -> Iterator[tqdm]:
    """A bar that leaves no trace where standard error is not a terminal."""
    with tqdm(total=total, desc=title, unit=unit, disable=not sys.stderr.isatty(), dynamic_ncols=True) as shown:
        yield shown


def counting(shown: tqdm) -> Callable[[int, int], None]:
    """A callable that takes (done, total) and moves the bar there."""

    def move(done: int, total: int) -> None:
        shown.total = total
        shown.update(done - shown.n)

    return move
