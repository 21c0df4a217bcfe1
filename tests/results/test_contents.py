"""Stored task lists are found by their digest; what is none is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from repro.errors import BadInput
from repro.results.contents import StoredContents
from tests.results.worlds import draw_contents


def test_lists_are_found_by_digest_in_any_folder(tmp_path: Path) -> None:
    expected = draw_contents(np.random.default_rng(0), 20, 5)
    parts = {
        "classes": expected.classes_TW,
        "support": expected.support_TWK,
        "query": expected.query_TWQ,
        "seen": expected.seen_TS,
    }
    file = tmp_path / "0" / "mini" / "test" / "5way-1shot.safetensors"
    file.parent.mkdir(parents=True)
    arrays = {name: np.ascontiguousarray(part, np.int32) for name, part in parts.items()}
    save_file(arrays, file, {"tasks": json.dumps({"spec": {}, "digest": "abc"})})
    stored = StoredContents(tmp_path / "elsewhere", tmp_path / "0")
    found = stored("abc")
    assert found is not None and found is stored("abc")
    for name in ("classes_TW", "support_TWK", "query_TWQ", "seen_TS"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert stored("another") is None


def test_a_file_of_something_else_is_named(tmp_path: Path) -> None:
    (tmp_path / "5way-1shot.safetensors").write_text("nothing")
    with pytest.raises(BadInput, match="5way-1shot.safetensors: not a stored task list .*; delete it"):
        StoredContents(tmp_path)("abc")
