"""Reading a pickle that may come from anywhere: plain containers, text, bytes, numbers and numpy arrays only.

A pickle is a program; the usual reader runs whatever it names. This one resolves the handful of names that numpy
arrays are made of to the small stand-ins below, which check what they are given before numpy sees any of it, and
refuses every other name before anything is called.
"""

import os
import pickle
import re
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from repro.errors import BadInput

# Numbers, bytes and text; neither objects, which could hold anything, nor records and dates.
_PLAIN_DTYPE = re.compile(r"[<>|=]?(?:b1|[iuf][1248]|f16|c8|c16|[SU]\d+)")


def read_plain_pickle(file: Path) -> Any:
    """Read a pickle of plain containers, str, bytes, numbers and numpy arrays. Raises BadInput for anything else.

    Text of Python 2 is read as Latin-1, so that both its text and its array contents survive.
    """
    try:
        with file.open("rb") as stream:
            return _finished(_PlainUnpickler(_Bounded(stream), encoding="latin1").load())
    except OSError as error:
        raise BadInput(f"{file}: cannot be read ({error.strerror}), expected a pickle that you may read") from error
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from error
    except Exception as error:  # a damaged pickle can fail in any way
        message = f"{file}: not a whole pickle ({type(error).__name__})"
        raise BadInput(f"{message}, expected arrays in plain containers; fetch the file again") from error


class _Bounded:
    """A stream that refuses to read beyond the end of its file, so that a false length cannot take all memory."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._left = os.fstat(stream.fileno()).st_size

    def read(self, count: int) -> bytes:
        self._left -= count
        if self._left < 0:
            raise EOFError
        return self._stream.read(count)

    def readline(self) -> bytes:
        line = self._stream.readline()
        self._left -= len(line)
        return line


# The reader in Python, not the one in C: the latter sets memory aside for any number that a damaged file names.
class _PlainUnpickler(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Give the stand-in of what a numpy array needs; refuse everything else by name."""
        if (module, name) in _ALLOWED:
            return _ALLOWED[module, name]
        message = f"asks for {module}.{name}, expected plain containers, text, bytes, numbers and numpy arrays only"
        raise BadInput(f"{message}; do not load this file elsewhere unless you trust it")

    def persistent_load(self, pid: Any) -> Any:
        """Refuse references to things outside the file."""
        raise BadInput("refers to objects outside the file, expected plain containers and numpy arrays only")


class _Dtype:
    """Stands in for numpy.dtype: a plain element type, whose byte order the pickle states afterwards."""

    def __init__(self, description: Any, *_flags: Any) -> None:
        if not isinstance(description, str) or not _PLAIN_DTYPE.fullmatch(description):
            raise BadInput(f"holds an array of {description!r}, expected arrays of numbers, text or bytes")
        self.dtype = np.dtype(description)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder(state[1])


class _Array:
    """Stands in for a numpy array until its state has been read."""

    def __init__(self, _kind: str, _shape: tuple[int, ...], _code: bytes | str) -> None:
        self.array = np.empty(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _version, shape, element, is_fortran, content = state
        self.array = _array(content, element, shape, "F" if is_fortran else "C")


def _array(content: Any, element: _Dtype, shape: tuple[int, ...], order: str = "C") -> np.ndarray:
    """An array on the pickle's bytes; numpy raises where their number does not fit the shape."""
    raw = content.encode("latin1") if isinstance(content, str) else content
    flat = np.frombuffer(raw, element.dtype) if len(raw) else np.empty(0, element.dtype)
    return flat.reshape(shape, order="F" if order == "F" else "C")


def _scalar(element: _Dtype, content: bytes | str) -> Any:
    return _array(content, element, (1,))[0]


def _encode(text: str, encoding: str) -> bytes:
    """Bytes as protocol 2 writes them."""
    if encoding not in ("latin1", "latin-1"):
        raise BadInput(f"encodes bytes as {encoding}, expected latin1")
    return text.encode("latin1")


def _finished(value: Any) -> Any:
    """The value with every stand-in replaced by its array."""
    if isinstance(value, _Array):
        return value.array
    if isinstance(value, dict):
        return {key: _finished(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_finished(member) for member in value)
    return value


# The names that arrays and numpy's numbers have in pickles of numpy 1 and 2, written by Python 2 and 3.
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): "ndarray",  # only ever named as an argument of _reconstruct, so a word will do
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
    ("collections", "OrderedDict"): dict,
    **{(module, kind.__name__): kind for module in ("builtins", "__builtin__") for kind in (set, frozenset, bytes)},
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _Array for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "scalar"): _scalar for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _array for core in ("core", "_core")},
}
