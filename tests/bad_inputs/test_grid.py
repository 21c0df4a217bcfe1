"""paper/grid.yaml and the names that stages are asked for."""

from collections.abc import Callable

import pytest

from tests.bad_inputs.asking import PLAN, Refused, Row, grid, nothing, params, removed, written

TRAIN = "stages plan && stages train mini-castle-1shot"
KNN_LINE = {"dataset": "mini", "method": "mc_knn", "shot": 1, "ways": [5], "pretrained": "standard"}
PLANNED = "settings/train/mini-castle-1shot.json"

REFUSED: dict[str, Refused] = {
    "a way that is none": (
        grid(trained__CASTLE__ways=[True]),
        "grid.yaml: trained.mini-castle-1shot.ways.0 is True, expected: a number of ways from 1, or all\n",
    ),
    "a missing key": (grid(trained__CASTLE={"dataset": "mini"}), "trained.mini-castle-1shot.method is missing"),
    "an unknown key": (grid(trained__CASTLE__steps=3), "unknown key trained.mini-castle-1shot.steps"),
    "an unknown group": (grid(more={}), "unknown key more"),
    "a word for a number": (grid(trained__CASTLE__shot="x"), "trained.mini-castle-1shot.shot is 'x', expected"),
    "a shot without tasks": (grid(trained__CASTLE__shot=3), "shot is 3, mini has stored tasks of [1, 5] shots"),
    "a way without tasks": (grid(untrained__KNN__ways=[6]), "way is 6, mini has stored tasks of 5 ways"),
    "a way that is no number": (grid(untrained__KNN__ways=["many"]), "untrained.mini-mc_knn-1shot.ways.0"),
    "no ways": (grid(untrained__KNN__ways=[]), "untrained.mini-mc_knn-1shot.ways is [], expected"),
    "a dataset there is not": (grid(untrained__KNN__dataset="maxi"), "dataset is 'maxi', expected one of mini"),
    "a method there is not": (grid(untrained__KNN__method="knn"), "method is 'knn', expected one of acastle"),
    "a path for a method": (grid(untrained__KNN__method="../x"), "method is '../x', expected"),
    "a file that holds no method": (grid(untrained__KNN__method="base"), "method is 'base', expected one of"),
    "pre-training there is not": (grid(untrained__KNN__pretrained="square"), "pretrained is 'square', expected"),
    "a random backbone that is not made": (grid(random=["maxi"]), "random: dataset is 'maxi', expected one of"),
    "a way twice": (grid(trained__CASTLE__ways=[5, 5]), "ways are [5, 5], expected each once"),
    "a random backbone twice": (grid(random=["mini", "mini"]), "random are ['mini', 'mini'], expected each once"),
    "a cell in two groups": (
        grid(
            untrained__CASTLE={"dataset": "mini", "method": "castle", "shot": 1, "ways": [5], "pretrained": "standard"}
        ),
        "expected each once",
    ),
    "a command for a name": (grid(trained={"$(touch ran)": {}}), "trained.$(touch ran)"),
    "a path as a name": (grid(trained={"../../../outer": {}}), "trained.../../../outer"),
    "a base that is no cell": (grid(adapted__ADAPTED__base="none"), "base is 'none', castle_adapted builds on"),
    "a base that is not trained": (
        grid(adapted__ADAPTED__base="mini-mc_knn-1shot"),
        "base is 'mini-mc_knn-1shot', castle_adapted builds on a trained castle on mini; expected one of: mini-castle",
    ),
    "a base that is the cell itself": (
        grid(adapted__ADAPTED__base="mini-castle_adapted-1shot"),
        "base is 'mini-castle_adapted-1shot'",
    ),
    "the experiment as a base": (grid(adapted__ADAPTED__base="experiment"), "base is 'experiment'"),
    "a method that adapts among the trained": (
        grid(trained__CASTLE__method="castle_adapted"),
        "castle_adapted adapts a trained castle, expected it under `adapted`",
    ),
    "a method of its own among the adapted": (
        grid(adapted__ADAPTED__method="teen"),
        "teen builds on a trained teen on mini; expected one of: none yet",
    ),
    **{
        f"a cell with the name of {what}": (grid(**{f"untrained__{name}": KNN_LINE}), f"{name} is {what}")
        for name, what in {"experiment": "the experiment in params.yaml", "mini-standard": "a backbone"}.items()
    },
    "a trained method among the untrained": (
        grid(untrained__KNN__method="castle"),
        "mini-mc_knn-1shot: castle has a training, which a line of `untrained` leaves out; put it under `trained`",
    ),
    "a base without training": (
        params(method="castle_adapted"),
        "method is 'castle_adapted', which adapts a trained castle",
    ),
    "cells that differ in capitals alone": (
        grid(**{"untrained__Mini-castle-1shot": KNN_LINE}),
        "cells mini-castle-1shot and Mini-castle-1shot differ in capitals alone, expected names apart",
    ),
    "a grid that is no mapping": (written("paper/grid.yaml", "- 1\n"), "grid.yaml: holds list"),
    "a grid without groups": (written("paper/grid.yaml", "trained: {}\n"), "grid.yaml: random is missing"),
    "a grid with a tag": (
        written("paper/grid.yaml", "trained: !!python/name:os.system\n"),
        "grid.yaml: not plain YAML",
    ),
    "no grid": (removed("paper/grid.yaml"), "grid.yaml: cannot be read"),
}
TABLE: dict[str, Row] = {
    "no name": (nothing, "stages train", "got no name, expected one name: python -m stages train NAME"),
    "two names": (nothing, "stages splits mini mini", "got mini mini, expected one name"),
    "a name that leads nowhere": (nothing, "stages train one", "'one', expected one of: experiment, mini-castle"),
    "a path for a name": (nothing, "stages train ../x", "got ../x, expected one name"),
    "a folder for a plan": (
        lambda folder: ((folder / PLANNED).unlink(), (folder / PLANNED).mkdir()),
        "stages train mini-castle-1shot",
        "mini-castle-1shot.json: is a folder, expected the file that `plan` writes",
    ),
    "a plan with words for seeds": (
        written(PLANNED, '{"seeds": "x"}'),
        "stages train mini-castle-1shot",
        "mini-castle-1shot.json: lists no seeds, expected what this version plans",
    ),
    "an option for a name": (nothing, "stages train --help", "got --help, expected one name"),
    "a base without a model": (
        nothing,
        "stages evaluate mini-castle_adapted-1shot",
        "models/cells/mini-castle-1shot/0: no readable model.json",
    ),
    "pre-training of another kind": (
        grid(trained__CASTLE__method="dfsl", adapted={}),
        TRAIN,
        "was pre-trained as normalised, dfsl starts from cosine",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_grid_is_refused_before_anything_runs(name: str, judge: Callable[..., None]) -> None:
    damage, expected = REFUSED[name]
    judge(damage, PLAN, expected)


@pytest.mark.parametrize("name", TABLE)
def test_a_wrong_grid_gets_one_sentence(name: str, judge: Callable[..., None]) -> None:
    judge(*TABLE[name])
