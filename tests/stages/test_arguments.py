"""A stage's command line is read as params.yaml is: strictly, and every mistake answered in one sentence."""

from pathlib import Path

import pytest

from repro.errors import BadInput
from stages._arguments import EvaluationLine, PretrainingLine, TrainingLine, line_of
from stages._params import Params, Strict, read_params

ROOT = Path(__file__).resolve().parents[2]
CELL = "--dataset mini --method castle --shot 1"


@pytest.fixture(scope="module")
def params() -> Params:
    return read_params(ROOT / "params.yaml")


def read(kind: type[Strict], told: str, params: Params) -> Strict:
    return line_of(kind, ["stage", *told.split()], params)[1]


def test_values_lists_flags_and_nested_keys_are_read(params: Params) -> None:
    told = f"one {CELL} --options.ratio 3.0 --options.average post --ways 5 all --seen --model models/cells/one"
    line = read(EvaluationLine, told, params)
    assert line.model_dump() == {
        "dataset": "mini",
        "method": "castle",
        "shot": 1,
        "model": "models/cells/one",
        "ways": [5, "all"],
        "seen": True,
        "options": {"ratio": 3.0, "average": "post"},
    }
    assert read(EvaluationLine, f"one {CELL} --ways 5 --model x", params).ways == [5]
    assert not read(PretrainingLine, "one --dataset mini --classifier linear", params).random


@pytest.mark.parametrize(
    ("kind", "told", "expected"),
    [
        (TrainingLine, "", "got no name, expected a name"),
        (TrainingLine, "--dataset mini", "got --dataset mini, expected a name"),
        (TrainingLine, "one two", "got 'two' before any --key"),
        (TrainingLine, f"one {CELL}", "one: pretrained is missing"),
        (TrainingLine, f"one {CELL} --pretrained mini-linear --steps 3", "one: unknown key steps"),
        (
            TrainingLine,
            "one --dataset maxi --method castle --shot 1 --pretrained x",
            "dataset is 'maxi', expected one of",
        ),
        (
            TrainingLine,
            "one --dataset mini --method castel --shot 1 --pretrained x",
            "method is 'castel', expected one",
        ),
        (
            TrainingLine,
            "one --dataset mini --method castle --shot 3 --pretrained x",
            "shot is 3, mini has stored tasks",
        ),
        (TrainingLine, "one --dataset mini --method castle --shot x --pretrained x", "shot is 'x', expected"),
        (TrainingLine, f"one {CELL} --pretrained ../x", "pretrained is '../x', expected"),
        (PretrainingLine, "one --dataset mini --classifier square", "classifier is 'square', expected one of linear"),
        (EvaluationLine, f"one {CELL} --ways many --model x", "ways.0"),
    ],
)
def test_a_wrong_argument_is_named_with_what_was_expected(
    kind: type[Strict], told: str, expected: str, params: Params
) -> None:
    with pytest.raises(BadInput) as caught:
        read(kind, told, params)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
