"""Command lines of stages, as paper/grid.yaml gives them through DVC or a user types them."""

from collections.abc import Callable

import pytest

from tests.bad_inputs.asking import Row, nothing, params, removed, written

CELL = "--dataset mini --method castle --shot 1"
TRAIN = f"stages train one {CELL} --pretrained mini-linear"
SHOTS = "stages train one --dataset mini --method castle --pretrained mini-linear --shot"
MODEL = "stages evaluate one --dataset mini --shot 1 --ways 5 --method mc_knn --model"
WAYS = "stages evaluate one --dataset mini --shot 1 --method mc_knn --model x --ways"

TABLE: dict[str, Row] = {
    "no name": (nothing, "stages train", "got no name, expected a name"),
    "two names": (nothing, "stages splits mini mini", "got mini mini, expected one dataset"),
    "a value before any key": (nothing, "stages train one two", "got 'two' before any --key"),
    "a missing key": (nothing, f"stages train one {CELL}", "one: pretrained is missing"),
    "an unknown key": (nothing, f"{TRAIN} --steps 3", "one: unknown key steps"),
    "a key twice": (nothing, f"{TRAIN} --shot 5", "--shot is given twice"),
    "a word for a number": (nothing, f"{SHOTS} x", "shot is 'x', expected"),
    "a shot without tasks": (nothing, f"{SHOTS} 3", "shot is 3, mini has stored tasks of [1, 5] shots"),
    "a way without tasks": (nothing, f"{WAYS} 6", "way is 6, mini has stored tasks of 5 ways"),
    "no ways": (nothing, WAYS, "ways is [], expected"),
    "a key inside a number": (nothing, f"{TRAIN} --shot.deep 3", "--shot.deep leads into 1, expected"),
    "a number instead of options": (nothing, f"{TRAIN} --options 3 --options.ratio 2", "leads into 3, expected"),
    "a key of dots": (nothing, f"{TRAIN} --.. 3", "unknown key"),
    "a tag that runs code": (nothing, f"{TRAIN} --options.x !!python/name:os.system", "not plain YAML"),
    "an alias": (nothing, f"{TRAIN} --options.x *a", "line 1 has an alias"),
    "a key twice in a value": (nothing, f"{TRAIN} --options.x {{a:,a:}}", "the key 'a' is given twice"),
    "a path for a name": (
        nothing,
        f"stages train one {CELL} --pretrained ../../x",
        "pretrained is '../../x', expected",
    ),
    "a path for a cell": (nothing, f"stages train ../x {CELL} --pretrained mini-linear", "'../x' cannot name a run"),
    "a folder without a model": (nothing, f"{MODEL} models/none", "models/none: no readable model.json"),
    "a model outside": (nothing, f"{MODEL} /etc", "/etc: no readable model.json"),
    "a base without training": (
        params(method="castle_adapted"),
        "stages train experiment",
        "method is 'castle_adapted', which adapts a trained castle",
    ),
    "a method on nothing": (
        nothing,
        "stages evaluate one --dataset mini --shot 1 --ways 5 --method icarl --model models/pretrained/none",
        "models/pretrained/none: no readable model.json",
    ),
    "pre-training of another kind": (
        nothing,
        "stages train one --dataset mini --method dfsl --shot 1 --pretrained mini-linear",
        "was pre-trained as normalised, dfsl starts from cosine",
    ),
    "a grid that is no mapping": (written("paper/grid.yaml", "- 1\n"), "stages paper", "grid.yaml"),
    "a grid without groups": (written("paper/grid.yaml", "cells: {}\n"), "stages paper", "grid.yaml"),
    "a grid with a tag": (written("paper/grid.yaml", "cells: !!python/name:os.system\n"), "stages paper", "grid.yaml"),
    "no grid": (removed("paper/grid.yaml"), "stages paper", "grid.yaml"),
}


@pytest.mark.parametrize("name", TABLE)
def test_wrong_arguments_get_one_sentence(name: str, judge: Callable[[Row], None]) -> None:
    judge(TABLE[name])
