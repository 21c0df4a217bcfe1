"""The restricted unpickler: everything TieredImageNet's files hold comes through, nothing that could run does."""

import io
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.errors import BadInput
from repro.preparation.unpickle import read_plain_pickle

PLAIN = {
    "label_specific": np.arange(6, dtype=np.int32),
    "images": [np.arange(12, dtype=np.uint8).reshape(-1, 1), np.asfortranarray(np.ones((2, 3)))],
    "names": ["Grus", "çrane", b"raw", b""],
    "numbers": (1, 2.5, None, True, np.float32(0.5), np.int64(-3)),
    "sets": {1, 2},
    "text": np.array(["a", "bc"]),
    "empty": np.zeros((0, 3), np.uint8),
}


class Runs:
    """Unpickling this with the usual reader would run a command."""

    def __init__(self, function: object, *arguments: object) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple:
        return self.call


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_containers_and_arrays_come_through_every_protocol(tmp_path: Path, protocol: int):
    file = tmp_path / "plain.pkl"
    file.write_bytes(pickle.dumps(PLAIN, protocol=protocol))
    read = read_plain_pickle(file)
    assert read.keys() == PLAIN.keys()
    for key in ("label_specific", "text", "empty"):
        assert np.array_equal(read[key], PLAIN[key])
        assert read[key].dtype == PLAIN[key].dtype
    for ours, theirs in zip(read["images"], PLAIN["images"], strict=True):
        assert np.array_equal(ours, theirs)
    for key in ("names", "numbers", "sets"):
        assert read[key] == PLAIN[key]


def test_text_and_arrays_of_python_2_are_read(tmp_path: Path):
    file = tmp_path / "old.pkl"
    old = pickle.dumps({"label_specific_str": "crane", "a": np.array([200], np.uint8)}, protocol=2)
    # Python 2 wrote byte strings (opcode U, length, bytes) where Python 3 writes text (opcode X).
    file.write_bytes(old.replace(b"X\x05\x00\x00\x00crane", b"U\x05cr\xe2ne"))
    read = read_plain_pickle(file)
    assert read["label_specific_str"] == "crâne"
    assert read["a"].tolist() == [200]


@pytest.mark.parametrize(
    "function", [os.system, eval, exec, open, getattr, __import__, np.load, np.fromfile, pickle.loads, io.open_code]
)
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_pickle_that_names_a_function_is_refused_before_it_runs(tmp_path: Path, function: object, protocol: int):
    file, trace = tmp_path / "evil.pkl", tmp_path / "ran"
    file.write_bytes(pickle.dumps([PLAIN, Runs(function, f"touch {trace}")], protocol=protocol))
    with pytest.raises(BadInput, match=r"evil\.pkl: asks for .*expected plain containers"):
        read_plain_pickle(file)
    assert not trace.exists()


def test_arrays_of_objects_are_refused(tmp_path: Path):
    file = tmp_path / "objects.pkl"
    file.write_bytes(pickle.dumps(np.array([{}, []], dtype=object)))
    with pytest.raises(BadInput, match="array of .O8., expected arrays of numbers"):
        read_plain_pickle(file)


def test_persistent_references_are_refused(tmp_path: Path):
    (tmp_path / "p.pkl").write_bytes(b"Psomewhere\n.")
    with pytest.raises(BadInput, match="refers to objects outside the file"):
        read_plain_pickle(tmp_path / "p.pkl")


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(BadInput, match=r"none\.pkl: cannot be read \(No such file or directory\)"):
        read_plain_pickle(tmp_path / "none.pkl")


def test_a_truncated_pickle_is_named_wherever_it_is_cut(tmp_path: Path):
    whole = pickle.dumps(PLAIN, protocol=2)
    file = tmp_path / "cut.pkl"
    for length in range(0, len(whole) - 1, 7):
        file.write_bytes(whole[:length])
        with pytest.raises(BadInput, match=r"cut\.pkl"):
            read_plain_pickle(file)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_in_one_sentence(tmp_path_factory: pytest.TempPathFactory, content: bytes):
    file = tmp_path_factory.getbasetemp() / "fuzz.pkl"
    file.write_bytes(content)
    try:
        read_plain_pickle(file)
    except BadInput as error:
        assert str(file) in str(error)


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_pickle_with_one_wrong_byte_is_read_or_refused(tmp_path_factory, place: int, value: int):
    content = bytearray(pickle.dumps(PLAIN, protocol=2))
    content[place % len(content)] = value
    file = tmp_path_factory.getbasetemp() / "flipped.pkl"
    file.write_bytes(content)
    try:
        read_plain_pickle(file)
    except BadInput as error:
        assert str(file) in str(error)
