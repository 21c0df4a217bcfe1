"""paper/tuning.json that is none."""

import json
from pathlib import Path

import pytest

from repro.errors import BadInput
from repro.results.tuning import read_tunings


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_a_file_that_is_no_json_is_one_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "tuning.json").write_text(text)
    with pytest.raises(BadInput, match="tuning.json: is no JSON"):
        read_tunings(tmp_path / "tuning.json")


OUTCOME = {"hm": 1.0, "cal_hm": 1.0, "ausuc": 1.0}
SETTING = {"dataset": "mini", "shot": 1, "seed": 0, "steps": 10, "by": "hm", "together": ["castle"]}
TRIED = {"options": {}, "training": {}, "outcome": OUTCOME}
RUNG = {"steps": 10, "outcomes": [OUTCOME]}
CLIMB = {"plateau": 0.5, "seeds": [0], "dataset": "mini", "method": "mc_knn"}


@pytest.mark.parametrize(
    ("tuning", "said"),
    [
        ({"settings": {"castle": {**SETTING, "tried": [TRIED], "chosen": 1}}}, "chosen is 1, expected the number of"),
        ({"settings": {"castle": {**SETTING, "tried": [TRIED], "chosen": -1}}}, "chosen is -1, expected the number"),
        ({"settings": {"castle": {**SETTING, "tried": [], "chosen": 0}}}, "chosen is 0, expected the number of one of"),
        (
            {"pretraining": [{**CLIMB, "rungs": [RUNG, {**RUNG, "outcomes": []}]}]},
            "rungs.1.outcomes is \\[\\], expected",
        ),
    ],
)
def test_choices_that_nothing_was_chosen_from_are_one_sentence(tuning: object, said: str, tmp_path: Path) -> None:
    (tmp_path / "tuning.json").write_text(json.dumps({"benchmarks": {"x": tuning}}))
    with pytest.raises(BadInput, match=said):
        read_tunings(tmp_path / "tuning.json")
