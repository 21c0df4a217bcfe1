"""paper/tuning.json that is none."""

from pathlib import Path

import pytest

from repro.errors import BadInput
from repro.results.tuning import read_tunings


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_a_file_that_is_no_json_is_one_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "tuning.json").write_text(text)
    with pytest.raises(BadInput, match="tuning.json: is no JSON"):
        read_tunings(tmp_path / "tuning.json")
