"""Pieces of work side by side: one worker per thread that torch may use, each computing on its own.

The operations on a block of tasks are too small to be worth splitting between cores, so every core gets whole pieces
instead. A piece is computed by one thread however many there are: its result does not depend on their number.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def workers(device: torch.device) -> int:
    """How many pieces are worked on at once; an accelerator takes them one after the other."""
    return torch.get_num_threads() if device.type == "cpu" else 1


def in_order(work: Callable[[Piece], Result], pieces: Iterable[Piece], device: torch.device) -> Iterator[Result]:
    """Yield `work(piece)` for every piece in order, without gradients; only a few results wait at any time."""
    at_once = workers(device)
    if at_once == 1:
        yield from map(torch.no_grad()(work), pieces)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(at_once, initializer=torch.set_num_threads, initargs=(1,)) as executor:
        try:
            for piece in pieces:
                # Switching gradients off counts for one thread only, so it is part of the work.
                waiting.append(executor.submit(torch.no_grad()(work), piece))
                if len(waiting) > at_once:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            executor.shutdown(cancel_futures=True)
            torch.set_num_threads(at_once)  # the initializer's 1 would be what threads to come begin with
