"""Reading a pickle that may come from anywhere: plain containers, text, bytes, numbers and numpy arrays only.

A pickle is a program; the usual reader runs whatever it names. This one resolves the handful of names that numpy
arrays are made of, and refuses every other before anything is called.
"""

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from repro.errors import BadInput

# What `numpy.ndarray.__reduce__` and numpy scalars name, by numpy 1 and 2, written by Python 2 and 3.
_MULTIARRAY = ("numpy.core.multiarray", "numpy._core.multiarray")
_NUMERIC = ("numpy.core.numeric", "numpy._core.numeric")
_PLAIN_KINDS = "biufcSU"  # numbers, bytes and text; not objects, records and dates


def read_plain_pickle(file: Path) -> Any:
    """Read a pickle of plain containers, str, bytes, numbers and numpy arrays. Raises BadInput for anything else.

    Text of Python 2 is read as Latin-1, so that both its text and its array contents survive.
    """
    try:
        with file.open("rb") as stream:
            return _PlainUnpickler(stream, encoding="latin1").load()
    except OSError as error:
        raise BadInput(f"{file}: cannot be read ({error.strerror}), expected a pickle that you may read") from error
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from error
    # A damaged pickle can fail in any of these ways, from the opcode reader to numpy's array state.
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise BadInput(f"{file}: not a whole pickle ({error}), expected arrays in plain containers") from error
    except (MemoryError, OverflowError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{file}: not a whole pickle ({error}), expected arrays in plain containers") from error


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Give what a numpy array needs; refuse everything else by name."""
        if (module, name) in _ALLOWED:
            return _ALLOWED[module, name]
        message = f"asks for {module}.{name}, expected plain containers, text, bytes, numbers and numpy arrays only"
        raise BadInput(f"{message}; do not load this file elsewhere unless you trust it")

    def persistent_load(self, pid: Any) -> Any:
        """Refuse references to things outside the file."""
        raise BadInput("refers to objects outside the file, expected plain containers and numpy arrays only")


def _dtype(description: str, *flags: Any) -> np.dtype:
    """`numpy.dtype` for plain elements: an array of objects could hold anything."""
    made = np.dtype(description)
    if made.kind not in _PLAIN_KINDS:
        raise BadInput(f"holds an array of {made}, expected arrays of numbers, text or bytes")
    return made


def _scalar(dtype: np.dtype, content: bytes | str) -> Any:
    raw = content.encode("latin1") if isinstance(content, str) else content
    return np.frombuffer(raw, dtype)[0]


def _empty_array(_kind: str, shape: tuple[int, ...], _code: bytes | str) -> np.ndarray:
    """What numpy calls before it fills an array from the pickle's state."""
    return np.ndarray.__new__(np.ndarray, shape, np.int8)


def _from_buffer(buffer: Any, dtype: np.dtype, shape: tuple[int, ...], order: str) -> np.ndarray:
    return np.frombuffer(buffer, dtype).reshape(shape, order="F" if order == "F" else "C")


def _encode(text: str, encoding: str) -> bytes:
    """Bytes as protocol 2 writes them."""
    if encoding not in ("latin1", "latin-1"):
        raise BadInput(f"encodes bytes as {encoding}, expected latin1")
    return text.encode("latin1")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): "ndarray",  # only ever named as an argument of _reconstruct, so a word will do
    ("numpy", "dtype"): _dtype,
    ("_codecs", "encode"): _encode,
    ("collections", "OrderedDict"): dict,
    **{
        (module, kind.__name__): kind
        for module in ("builtins", "__builtin__")
        for kind in (set, frozenset, bytes, bytearray)
    },
    **{(module, "_reconstruct"): _empty_array for module in _MULTIARRAY},
    **{(module, "scalar"): _scalar for module in _MULTIARRAY},
    **{(module, "_frombuffer"): _from_buffer for module in _NUMERIC},
}
