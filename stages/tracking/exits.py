"""How a command ends when its input is wrong or somebody stops it."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from repro.errors import BadInput, one_line
from repro.files import file_errors_as_bad_input
from stages.launching.output import escape_what_is_lacking
from stages.launching.ranks import BAD_INPUT, is_rank, leave_to_launcher
from stages.tracking.capture import write_to_null
from stages.tracking.names import printable

MORE_MEMORY = (
    "expected room for what was asked for; ask for less, end other processes, or raise the limit (`ulimit -v`)"
)
# What PyTorch raises where the settings are at fault, by the names of its errors: this room does not load it.
SAID_OF = {
    "_LinAlgError": "a fit has no solution ({}), expected finite numbers: the training has diverged; lower its lr",
    "OutOfMemoryError": "the GPU lacks memory ({}), expected room for a step; `tools/rehearse` finds the largest",
}
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def bad_input_exits() -> Iterator[None]:
    """Turn BadInput into its one sentence on standard error and exit code 2; of several ranks the launcher says it.

    So does a file that cannot be read or written: it was named by the user, and the message names it. So does memory
    that does not suffice, and what PyTorch says of a diverged training. An interrupt ends the command with the
    customary code.

    Where nobody reads standard output any more (`| head`), the command ends as other programs do, silently. What a
    terminal's encoding lacks is escaped.
    """
    escape_what_is_lacking()
    try:
        with file_errors_as_bad_input():
            try:
                yield
            except MemoryError as error:
                said = one_line(error) or "it asked for more than there is"
                raise BadInput(f"the memory does not suffice ({said}), {MORE_MEMORY}") from error
            except RuntimeError as error:
                if sentence := SAID_OF.get(type(error).__name__):
                    raise BadInput(sentence.format(one_line(error))) from error
                raise
            finally:
                _write_the_rest()
    except KeyboardInterrupt:
        raise SystemExit(128 + signal.SIGINT) from None
    except BrokenPipeError:
        write_to_null(sys.stdout)
        raise SystemExit(128 + signal.SIGPIPE) from None
    except BadInput as error:
        if is_rank():
            leave_to_launcher(error)
        else:
            _complain(f"error: {printable(one_line(error))}")
        raise SystemExit(BAD_INPUT) from None


def _complain(sentence: str) -> None:
    """Say it on standard error; where that is closed or refuses, the exit code alone tells."""
    try:
        if sys.stderr:
            print(sentence, file=sys.stderr, flush=True)
    except OSError:
        write_to_null(sys.stderr)


def _write_the_rest() -> None:
    """Write what was printed; where that fails, nobody tries it again when the process ends."""
    try:
        if sys.stdout:  # None where it was closed
            sys.stdout.flush()
    except BrokenPipeError:
        write_to_null(sys.stdout)
    except OSError:
        write_to_null(sys.stdout)
        raise


class Stopped(KeyboardInterrupt):
    """A signal arrived; Sacred records the run as INTERRUPTED, and no `except Exception` on the way swallows it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def signals_exit() -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP unwind the block, then exit with the customary code and without a traceback.

    A signal that is ignored, as SIGHUP is under nohup, stays ignored.
    """

    def stop(number: int, _frame: FrameType | None) -> None:
        raise Stopped(number)

    in_main_thread = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in STOPPING} if in_main_thread else {}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, stop)
        yield
    except KeyboardInterrupt as interrupt:
        raise SystemExit(128 + getattr(interrupt, "number", signal.SIGINT)) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
