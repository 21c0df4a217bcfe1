"""Interrupts that wait until what is under way is whole."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_wait() -> Iterator[None]:
    """Let signals to stop wait for the end of the block, which must be short: they would leave it half done."""
    if threading.current_thread() is not threading.main_thread():  # signals are handled in the main thread alone
        yield
        return
    received: list[int] = []
    try:
        with collect_signals() as received:
            yield
    finally:
        if received:
            signal.raise_signal(received[0])


@contextmanager
def collect_signals() -> Iterator[list[int]]:
    """Give the list that signals to stop go to while the block runs; for the main thread.

    One that is ignored, as SIGHUP is under nohup, stays ignored.
    """
    received: list[int] = []
    handlers = {number: signal.getsignal(number) for number in STOPPING}
    before = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}
    try:
        for number in before:
            signal.signal(number, lambda signum, _frame: received.append(signum))
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
