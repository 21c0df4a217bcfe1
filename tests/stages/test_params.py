"""params.yaml is checked as a whole, and every mistake is answered in one sentence."""

from pathlib import Path

import pytest
import yaml

from repro.errors import BadInput
from stages._params import read_params

ROOT = Path(__file__).resolve().parents[2]


def written(tmp_path: Path, text: str) -> Path:
    (tmp_path / "params.yaml").write_text(text)
    return tmp_path / "params.yaml"


def changed(tmp_path: Path, *path: str, value: object) -> Path:
    """params.yaml with one value replaced or added."""
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    inner = params
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return written(tmp_path, yaml.safe_dump(params))


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("sede",), 1, "unknown key sede"),
        (("seed",), "x", "seed is 'x', expected"),
        (("seed",), -1, "seed is -1, expected"),
        (("shot",), 10**12, "shot is 1000000000000, expected"),
        (("shot",), 1.5, "shot is 1.5, expected"),
        (("shot",), True, "shot is True, expected"),
        (("dataset",), "../mini", "dataset is '../mini', expected"),
        (("methods", "castle", "training", "steps"), 0, "methods.castle.training.steps is 0, expected"),
        (("methods", "castle", "training", "optimisation", "lr"), -0.1, "lr is -0.1, expected"),
        (("method",), "castel", "method is 'castel', expected one of acastle,"),
        (("backbones", "maxi"), {"name": "x"}, "backbones: 'maxi' is in it or in datasets, expected in both"),
        (("threads",), 0, "threads is 0, expected"),
        (("measuring", "few_shot"), ["none"], "measuring.few_shot.0"),
        (("precision", "amp"), "fp8", "precision.amp is 'fp8', expected"),
        (("paper", "form"), "theirs", "paper.form is 'theirs', expected"),
        (("episodes", "mini", "test"), [], "episodes.mini.test is [], expected"),
    ],
)
def test_a_wrong_value_is_named_with_what_was_expected(
    path: tuple[str, ...], value: object, expected: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput) as caught:
        read_params(changed(tmp_path, *path, value=value))
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    params = yaml.safe_load((ROOT / "params.yaml").read_text()) | {"seed": "x", "shot": "y"}
    with pytest.raises(BadInput, match=r"seed is 'x'.*shot is 'y'"):
        read_params(written(tmp_path, yaml.safe_dump(params)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x [1]\nb: *x\n", "line 2 has an alias"),
        ("seed: 1\nseed: 2\n", "'seed' is given twice"),
        ("seed: !!python/object/apply:os.system ['true']\n", "not plain YAML"),
        ("- 1\n- 2\n", "holds list"),
        ("{", "not plain YAML"),
        ("", "holds NoneType"),
        ("[" * 2000, "not plain YAML"),
        ("x: " + "y" * 2_000_000, "expected at most"),
    ],
)
def test_hostile_yaml_is_refused(text: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        read_params(written(tmp_path, text))
    assert expected in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"params\.yaml: cannot be read"):
        read_params(tmp_path / "params.yaml")
